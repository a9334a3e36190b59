// map applies a function to every element, or to every batch.
//
//   .map([](datum& e) { for (float& v : e.values<float>("x")) v = v / 255; })
//   .map({{"x", float32, {784}}}, [](const datum& from, datum& to) { ... }, {.parallel = 4})
//
// With `parallel` set, this number of threads call the function, each for one element at a time, and the thread that
// pulls elements reads the source. The elements keep the source's order. The function must then be pure: several
// threads call it at once, and it is called again for the elements that were in flight when a position was saved (the
// position holds them as they came from the source). An error in the function is raised by next() when its element is
// due; the element is lost, and the next call goes on.
#pragma once
#include "../base/build.hpp"

#include <deque>
#include <exception>
#include <mutex>
#include <utility>

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
  std::size_t in_flight() const { return put_ - taken_; }
  // Returns the i-th oldest element in flight as it came from the source. The threads only read it.
  const datum& entered(std::size_t i) const { return ring_[(taken_ + i) % ring_.size()].in; }
  datum& next_place() { return ring_[put_ % ring_.size()].in; }
  void put();
  // Waits until the oldest element is done, and takes its result.
  void take(datum& out);
  // Waits for the elements in flight, and discards them.
  void drop();

private:
  struct place {
    datum in, out;
    bool done = false;
    std::exception_ptr error;
  };
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
  mapped_dataset(units source, components to, function f, const map_options& how)
      : source_(std::move(source)), spec_(detail::announced(std::move(to), "map")), f_(std::move(f)), how_(how) {
    if (!f_) raise(status::invalid_argument, "map: expected a function");
    if (how.parallel < 0 || how.parallel > 1024)
      raise(status::invalid_argument, text("map: expected 0 to 1024 threads, found ", how.parallel));
  }
  mapped_dataset(mapped_dataset&&) = default;
  mapped_dataset& operator=(mapped_dataset&&) = default;
  // A copy has threads of its own, which start when it is first used. The elements in flight are put into the copy.
  mapped_dataset(const mapped_dataset& o)
      : detail::unit_stage<mapped_dataset, Batched>(o),
        source_(o.source_),
        spec_(o.spec_),
        f_(o.f_),
        how_(o.how_),
        waiting_(o.waiting_),
        failure_(o.failure_) {
    if (o.in_flight() == 0) return;
    std::vector<std::byte> at;
    position_writer to(at);
    o.write(to);
    position_reader from(at, true);
    read(from);
    failure_ = o.failure_;
  }
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
  bool pull_unit(datum& out) {
    if (how_.parallel == 0) {
      if (!next_in(in_)) return false;
      call(in_, out);
    } else {
      start();
      while (!threads_->full() && (failure_ == nullptr || !waiting_.empty()) && next_in_flight()) threads_->put();
      if (threads_->empty()) {
        if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
        return false;
      }
      threads_->take(out);
    }
    detail::check_unit(out, spec_, Batched, "map's function");
    return true;
  }
  void rewind() {
    drop();
    source_.rewind();
  }
  std::int64_t cardinality() const { return source_.cardinality(); }
  std::string external_state() const { return how_.stateful ? "a function of map" : source_.external_state(); }
  void define(std::string& to) const {
    source_.define(to);
    to += text(".map(", to_text(spec_), ")");
  }
  // The position is the elements in flight, then the source's position. It does not depend on the number of threads.
  void write(position_writer& to) const {
    const std::size_t flying = in_flight();
    to.number(static_cast<std::int64_t>(flying + waiting_.size()));
    for (std::size_t i = 0; i < flying; ++i) threads_->entered(i).write(to);
    for (const auto& d : waiting_) d.write(to);
    source_.write(to);
  }
  void read(position_reader& from) {
    std::deque<datum> waiting;
    for (auto n = from.number(0, 1024, "the elements in flight in map"); n > 0; --n) {
      waiting.emplace_back();
      waiting.back().read(from, source_.element_spec(), Batched);
      if constexpr (Batched)
        if (const std::int64_t rows = waiting.back().about(0).dims[0]; rows > source_.batch_size())
          raise(status::data_loss, text("the saved input position has batches of ", rows,
                                        " elements that map was computing, and this input has batches of ",
                                        source_.batch_size(), "; give it batches of that size"));
    }
    source_.read(from);
    if (!from.apply()) return;
    drop();
    waiting_ = std::move(waiting);
  }

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
  bool next_in(datum& to) {
    if (waiting_.empty()) return detail::read_unit(source_, to);
    std::swap(to, waiting_.front());
    waiting_.pop_front();
    return true;
  }
  // An error of the source comes behind the elements that are in flight.
  bool next_in_flight() {
#if defined(__cpp_exceptions)
    try {
#endif
      return next_in(threads_->next_place());
#if defined(__cpp_exceptions)
    } catch (...) {
      failure_ = std::current_exception();
      return false;
    }
#endif
  }
  std::size_t in_flight() const { return threads_ == nullptr ? 0 : threads_->in_flight(); }
  void start() {
    if (threads_ != nullptr) return;
    threads_ = std::make_unique<detail::map_threads>(
        [f = f_, spec = spec_](const datum& from, datum& to) { prepare_and_call(f, spec, from, to); }, how_.parallel,
        task_system(how_.driver));
  }
  void drop() {
    waiting_.clear();
    failure_ = nullptr;
    if (threads_ != nullptr) threads_->drop();
  }

  units source_;
  components spec_;
  function f_;
  map_options how_;
  datum in_;                    // a buffer
  std::deque<datum> waiting_;   // elements from a position, which come before the source's next
  std::exception_ptr failure_;  // of the source, which has its turn behind the elements in flight
  std::unique_ptr<detail::map_threads> threads_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "map.ipp"
#endif
