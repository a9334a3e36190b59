// map applies a function to every element, or to every batch.
//
//   .map([](datum& e) { for (float& v : e.values<float>("x")) v = v / 255; })
//   .map({{"x", float32, {784}}}, [](const datum& from, datum& to) { ... }, {.parallel = 4})
//
// With `parallel` set, this number of threads call the function, each for one element at a time, and the thread that
// pulls elements reads the source, which is ahead of the consumer by the elements in flight. The elements keep the
// source's order. The function must then be pure: several threads call it at once, and it is called again for the
// elements that were in flight when a position was saved. The position is the consumer's: elements in flight are read
// again after a restart, and a rewind in their midst first takes the source back, so that what follows is what it is
// without threads. An error in the function is raised by next() when its element is due; the element is lost, and the
// next call goes on. An error of the source is raised in its turn as well.
#pragma once
#include "../base/build.hpp"

#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <utility>

#include "../base/owned.hpp"
#include "../base/tasks.hpp"
#include "unit_stage.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// Threads that call the function, with a ring of elements in flight that keeps their order.
class map_threads {
public:
  using function = std::function<void(const datum&, datum&)>;

  map_threads(function f, int threads, const task_system& of);
  ~map_threads() { end(); }
  map_threads(const map_threads&) = delete;
  map_threads& operator=(const map_threads&) = delete;

  bool full() const { return put_ - taken_ == ring_.size(); }
  bool empty() const { return put_ == taken_; }
  struct place {
    datum in;
    std::vector<std::byte> after;  // the source's position behind this element, if `is_noted`
    bool is_noted = false;

  private:
    friend class map_threads;
    datum out;
    bool done = false;
    std::exception_ptr error;
  };
  // Returns the place of the element that is put next, and that of the oldest in flight. The threads use neither
  // `after` nor `is_noted`.
  place& next_place() { return ring_[put_ % ring_.size()]; }
  place& oldest() { return ring_[taken_ % ring_.size()]; }
  void put();
  // Waits until the oldest element is done, and takes its result.
  void take(datum& out);
  // Waits for the elements in flight, and discards them.
  void drop();

private:
  // Tells the threads to end when nothing is left to do. Their destructors wait for them.
  void end();
  void run();

  function f_;
  std::vector<place> ring_;
  std::size_t put_ = 0, begun_ = 0, taken_ = 0;  // the consumer changes put_ and taken_, the threads begun_
  std::mutex mutex_;
  bool ending_ = false;
  task_condition work_, done_;
  std::vector<task_handle> threads_;  // last, so that the threads end before the members that they use
};

}  // namespace detail

template <bool Batched>
class mapped_dataset final : public detail::unit_stage<mapped_dataset<Batched>, Batched> {
  using units = any_units<Batched>;
  using function = std::function<void(const datum&, datum&)>;

public:
  // f changes the element in place.
  mapped_dataset(units source, std::function<void(datum&)> f, const map_options& how)
      : mapped_dataset(std::move(source), {}, copying(std::move(f)), how) {
    spec_ = source_.element_spec();
  }
  mapped_dataset(units source, components to, function f, const map_options& how);
  mapped_dataset(mapped_dataset&&) = default;
  ~mapped_dataset();
  mapped_dataset& operator=(mapped_dataset&&) = default;
  // A copy has threads of its own, which start when it is first used, and begins where the consumer is.
  mapped_dataset(const mapped_dataset& o);
  mapped_dataset& operator=(const mapped_dataset& o) {
    mapped_dataset copy(o);
    return *this = std::move(copy);
  }

  const components& element_spec() const { return spec_; }
  std::int64_t batch_size() const
    requires Batched
  {
    return source_.batch_size();
  }
  bool pull_unit(datum& out);
  // The source's next iteration may depend on where it stands, so it goes to where the consumer is.
  void rewind();
  std::int64_t cardinality() const { return source_.cardinality(); }
  std::string external_state() const { return how_.stateful ? "a function of map" : source_.external_state(); }
  void define(std::string& to) const;
  // The position is a number and the source's position at the consumer's place, whatever the number of threads. The
  // number is 0 or, if that position is noted with few elements, below 0: how many were taken since, and behind it, of
  // batches, their size. Version 0.5.0 wrote how many elements were in flight, these elements, and the position behind
  // them; they are computed first, without threads, and are written so until then.
  void write(position_writer& to) const;
  void read(position_reader& from);

private:
  static function copying(std::function<void(datum&)> f) {
    if (!f) return {};
    return [f = std::move(f)](const datum& from, datum& to) {
      to = from;
      f(to);
    };
  }
  void call(const datum& from, datum& to) const { prepare_and_call(f_, spec_, from, to); }
  static void prepare_and_call(const function& f, const components& spec, const datum& from, datum& to) {
    to.conform(spec, Batched ? from.about(0).dims[0] : -1);
    f(from, to);
  }
  // Batches of the position have this size; smaller ones fit as well if they are held, and not counted.
  void check_rows(std::int64_t rows, bool are_held) const
    requires Batched
  {
    if (rows == source_.batch_size() || (are_held && rows < source_.batch_size())) return;
    raise(status::data_loss, text("the saved input position has batches of ", rows,
                                  " elements that map was computing, and this input has batches of ",
                                  source_.batch_size(), "; give it batches of that size"));
  }
  bool next_in(datum& to);
  // An error of the source comes behind the elements that are in flight, and so does its end.
  bool next_in_flight();
  void take_oldest(datum& out);
  // Returns whether the source is somewhere else than the consumer, which is `behind_` elements behind `at_`.
  bool is_ahead() const { return (threads_ != nullptr && !threads_->empty()) || failure_ != nullptr || has_ended_; }
  void go_to(const std::vector<std::byte>& at, std::int64_t behind);
  void pass(std::int64_t n) {
    while (n > 0 && source_.pull({}, 0, 1) != 0) --n;
  }
  void start();
  void drop();

  units source_;
  components spec_;
  function f_;
  map_options how_;
  datum in_;                    // a buffer
  std::deque<datum> waiting_;   // elements from a position, which come before the source's next
  std::exception_ptr failure_;  // of the source, which has its turn behind the elements in flight
  bool has_ended_ = false;      // the source, and the end has its turn as well
  std::vector<std::byte> at_;   // a position of the source that the consumer has reached, if `is_noted_`
  bool is_noted_ = false;
  std::int64_t behind_ = 0;  // elements taken since
  detail::position_notes notes_;
  detail::owned<detail::map_threads> threads_;
};

#ifdef GRADUS_COMPILED
extern template class mapped_dataset<false>;
extern template class mapped_dataset<true>;
#endif

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "map.ipp"
#endif
