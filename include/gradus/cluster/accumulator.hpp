// A conditional accumulator sums up gradients of several replicas until there are enough, and drops stale ones
// (tf.ConditionalAccumulator, tf.SparseConditionalAccumulator of 1.15, reduction MEAN).
//
//   gradus::dense_accumulator sum{gradus::float32, {2}};
//   sum.apply(0, std::array{1.0f, 2.0f});               // from a replica that computed at step 0: true, it counts
//   auto ticket = sum.take(2);                          // the mean of two gradients or more, once there are two
//   sum.apply(0, std::array{3.0f, 5.0f});
//   ticket.ready();                                     // true
//   ticket.value();                                     // {2, 3.5}
//
// Only one thread may use an accumulator at a time, and no call waits. Takes are served first in, first out. An
// accumulator is not saved: a job that restarts makes new ones and sets their step.
#pragma once
#include "../base/build.hpp"

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "../tensor/rows.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
void accumulate(std::byte* sum, const std::byte* g, dtype type, std::size_t n);
void divide(std::byte* sum, dtype type, std::size_t n, std::int64_t by);

// The counting that both kinds of accumulators share. Result is the type of a take's result.
template <class Result>
class conditional_accumulator {
public:
  // The future result of a take; copies refer to the same take.
  class ticket {
  public:
    bool ready() const { return result_ != nullptr && result_->done; }
    // Returns the result. Raises failed_precondition for a ticket that is not ready.
    const Result& operator*() const { return get(); }
    const Result* operator->() const { return &get(); }

  private:
    friend conditional_accumulator;
    struct pending {
      Result result;
      bool done = false;
    };
    std::shared_ptr<pending> result_;
    const Result& get() const {
      if (!ready()) raise(status::failed_precondition, "this take is not complete: too few gradients have come");
      return result_->result;
    }
  };

  // Returns the number of completed takes, unless set_global_step has set another. Gradients with an older local step
  // are dropped.
  std::int64_t global_step() const { return step_; }
  // Sets the global step, also to a smaller one than the present one.
  void set_global_step(std::int64_t step) { step_ = step; }
  // Returns the number of gradients accepted since the last take.
  std::int64_t num_accumulated() const { return count_; }
  dtype type() const { return type_; }
  const extents& dims() const { return dims_; }

protected:
  conditional_accumulator(dtype type, const extents& dims) : type_(type), dims_(dims) {
    if (!is_float(type))
      raise(status::invalid_argument, text("an accumulator holds float32 or float64, not ", name_of(type)));
  }
  bool accepts(std::int64_t local_step) const { return local_step >= step_; }
  // Counts an accepted gradient. `collect(Result&)` writes the mean to a result and clears the sum.
  template <class Collect>
  void count(Collect collect) {
    ++count_;
    serve(collect);
  }
  template <class Collect>
  ticket take(std::int64_t num_required, Collect collect) {
    if (num_required <= 0)
      raise(status::invalid_argument, text("take: expected num_required > 0, found ", num_required));
    ticket t;
    t.result_ = std::make_shared<typename ticket::pending>();
    waiting_.push_back({num_required, t});
    serve(collect);
    return t;
  }

private:
  struct wait {
    std::int64_t required;
    ticket t;
  };
  dtype type_;
  extents dims_;
  std::int64_t step_ = 0, count_ = 0;
  std::deque<wait> waiting_;

  template <class Collect>
  void serve(Collect collect) {
    while (!waiting_.empty() && count_ >= waiting_.front().required) {
      auto& p = *waiting_.front().t.result_;
      p.result.averaged_over = count_;
      collect(p.result);
      p.done = true;
      waiting_.pop_front();
      ++step_, count_ = 0;
    }
  }
};

struct dense_mean {
  std::int64_t averaged_over = 0;  // number of gradients; may be more than the required number
  dtype type = dtype::none;
  extents dims;
  aligned_buffer memory;
  const_tensor_view value() const { return {type, dims, memory.data()}; }
};
struct sparse_mean {
  std::int64_t averaged_over = 0;        // number of gradients
  std::vector<std::int64_t> rows;        // ascending
  std::vector<std::int64_t> row_counts;  // gradients that had this row: the divisor of its sum
  dtype type = dtype::none;
  extents dims;
  aligned_buffer memory;
  const_tensor_view values() const { return {type, dims, memory.data()}; }
};
}  // namespace detail

// Accumulates gradients of one array: the mean is over all that were accepted.
class dense_accumulator : public detail::conditional_accumulator<detail::dense_mean> {
public:
  dense_accumulator(dtype type, const extents& dims) : conditional_accumulator(type, dims), sum_(bytes()) {}

  // Adds a gradient that was computed at `local_step`. Returns false if it is stale (older than global_step) and was
  // dropped.
  template <readable_array X>
  bool apply(std::int64_t local_step, const X& gradient) {
    const const_tensor_view g = read_view(gradient);
    const bool fits = g.dims == dims() || (g.dims.rank <= 1 && g.size() == size());
    if (g.type != type() || !fits)
      raise(status::invalid_argument, text("expected a gradient of ", name_of(type()), " ", to_text(dims()), ", found ",
                                           name_of(g.type), " ", to_text(g.dims)));
    if (!accepts(local_step)) return false;
    if (num_accumulated() == 0)
      std::memcpy(sum_.data(), g.data, bytes());
    else
      detail::accumulate(sum_.data(), g.data, type(), size());
    count([this](auto& result) { collect(result); });
    return true;
  }
  // Returns a ticket for the mean, `->value()`, which is ready once num_required gradients were accepted and the takes
  // before this one are served. A take takes all gradients that there are, and global_step goes up by one.
  ticket take(std::int64_t num_required);

private:
  aligned_buffer sum_;
  std::size_t size() const { return static_cast<std::size_t>(gradus::count(dims())); }
  std::size_t bytes() const { return size() * size_of(type()); }
  void collect(detail::dense_mean& to);
};

// Accumulates gradients of rows of a table of these extents: the mean of each row is over the gradients that had that
// row.
class sparse_accumulator : public detail::conditional_accumulator<detail::sparse_mean> {
public:
  sparse_accumulator(dtype type, const extents& dims);

  // Adds a gradient, as dense_accumulator::apply. `rows` is a vector of int32 or int64 in [0, rows of the table),
  // `values` is [rows, ...]. A row that one gradient lists twice is summed and counts once (TensorFlow assumes that
  // rows are sorted and distinct).
  template <readable_array Rows, readable_array Values>
  bool apply(std::int64_t local_step, const Rows& rows, const Values& values) {
    const row_values g = merge_rows(rows, values);
    check(g);
    if (!accepts(local_step)) return false;
    const std::size_t bytes = width() * size_of(type());
    for (std::size_t i = 0; i < g.size(); ++i) {
      const std::byte* from = g.values().data + i * bytes;
      row& r = rows_[row_at(g, i)];
      if (r.count++ == 0)
        r.sum.assign(from, from + bytes);
      else
        detail::accumulate(r.sum.data(), from, type(), width());
    }
    count([this](auto& result) { collect(result); });
    return true;
  }
  ticket take(std::int64_t num_required);

private:
  struct row {
    std::int64_t count = 0;
    std::vector<std::byte> sum;
  };
  std::map<std::int64_t, row> rows_;

  std::size_t width() const;
  static std::int64_t row_at(const row_values& g, std::size_t i);
  void check(const row_values& g) const;
  void collect(detail::sparse_mean& to);
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "accumulator.ipp"
#endif
