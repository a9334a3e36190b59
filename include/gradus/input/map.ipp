// The bodies of map.hpp.
#pragma once
#include "../base/body.hpp"
#include "map.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY map_threads::map_threads(function f, int threads, const task_system& of)
    : f_(std::move(f)), ring_(static_cast<std::size_t>(threads)), work_(of), done_(of) {
  threads_.reserve(static_cast<std::size_t>(threads));
  // If a thread or memory is missing, the threads that have begun are waiting for work, and would be waited for.
  struct until_all_began {
    map_threads* all;
    ~until_all_began() {
      if (all != nullptr) all->end();
    }
  } guard{this};
  for (int i = 0; i < threads; ++i)
    threads_.push_back(of.start(text("map with ", threads, " threads, ", i, " begun,"), "ask for fewer (parallel)",
                                [this] { run(); }));
  guard.all = nullptr;
}

GRADUS_BODY void map_threads::put() {
  {
    const std::lock_guard lock(mutex_);
    ring_[put_ % ring_.size()].done = false;
    ++put_;
  }
  work_.notify_one();
}

GRADUS_BODY void map_threads::take(datum& out) {
  place& p = ring_[taken_ % ring_.size()];
  {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return p.done; });
    ++taken_;
  }
#if defined(__cpp_exceptions)
  if (p.error) std::rethrow_exception(std::exchange(p.error, nullptr));
#endif
  std::swap(out, p.out);
}

GRADUS_BODY void map_threads::drop() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] {
    for (std::size_t i = taken_; i < put_; ++i)
      if (!ring_[i % ring_.size()].done) return false;
    return true;
  });
  taken_ = put_;
  for (auto& p : ring_) p.error = nullptr;
}

GRADUS_BODY void map_threads::end() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  work_.notify_all();
}

GRADUS_BODY void map_threads::run() {
  for (;;) {
    place* p = nullptr;
    {
      std::unique_lock lock(mutex_);
      work_.wait(lock, [&] { return ending_ || begun_ < put_; });
      if (begun_ == put_) return;
      p = &ring_[begun_++ % ring_.size()];
    }
#if defined(__cpp_exceptions)
    try {
      f_(p->in, p->out);
    } catch (...) {
      p->error = std::current_exception();
    }
#else
    f_(p->in, p->out);
#endif
    {
      const std::lock_guard lock(mutex_);
      p->done = true;
    }
    done_.notify_one();
  }
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

template <bool Batched>
mapped_dataset<Batched>::mapped_dataset(units source, components to, function f, const map_options& how)
    : source_(std::move(source)), spec_(detail::announced(std::move(to), "map")), f_(std::move(f)), how_(how) {
  if (!f_) raise(status::invalid_argument, "map: expected a function");
  if (how.parallel < 0 || how.parallel > 1024)
    raise(status::invalid_argument, text("map: expected 0 to 1024 threads, found ", how.parallel));
}

template <bool Batched>
mapped_dataset<Batched>::mapped_dataset(const mapped_dataset& o)
    : detail::unit_stage<mapped_dataset, Batched>(o),
      source_(o.source_),
      spec_(o.spec_),
      f_(o.f_),
      how_(o.how_),
      waiting_(o.waiting_) {
  if (o.is_ahead()) go_to(o.at_, o.behind_);
}

template <bool Batched>
bool mapped_dataset<Batched>::pull_unit(datum& out) {
  if (how_.parallel == 0 || !waiting_.empty()) {
    if (!next_in(in_)) return false;
    call(in_, out);
  } else {
    start();
    if (!is_noted_) notes_.note(source_, at_), is_noted_ = true, behind_ = 0;
    while (!threads_->full() && failure_ == nullptr && !has_ended_ && next_in_flight()) threads_->put();
    if (threads_->empty()) {
      is_noted_ = has_ended_ = false;
      if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
      return false;
    }
    take_oldest(out);
  }
  detail::check_unit(out, spec_, Batched, "map's function");
  return true;
}

template <bool Batched>
void mapped_dataset<Batched>::rewind() {
  const bool was_ahead = is_ahead();
  drop();
  if (was_ahead) go_to(at_, behind_);
  source_.rewind();
}

template <bool Batched>
void mapped_dataset<Batched>::define(std::string& to) const {
  source_.define(to);
  to += text(".map(", to_text(spec_), ")");
}

template <bool Batched>
void mapped_dataset<Batched>::write(position_writer& to) const {
  if (!is_ahead()) {
    to.number(static_cast<std::int64_t>(waiting_.size()));
    for (const auto& d : waiting_) d.write(to);
    return source_.write(to);
  }
  to.number(-behind_);
  if constexpr (Batched)
    if (behind_ > 0) to.number(source_.batch_size());
  to.bytes(at_);
}

template <bool Batched>
void mapped_dataset<Batched>::read(position_reader& from) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  std::deque<datum> waiting;
  auto n = from.number(-detail::position_notes::rare, 1024, "the elements in flight in map");
  const std::int64_t behind = n < 0 ? -n : 0;
  if constexpr (Batched)
    if (behind > 0) check_rows(from.number(0, most, "the size of the batches in map"), false);
  for (; n > 0; --n) {
    waiting.emplace_back();
    waiting.back().read(from, source_.element_spec(), Batched);
    if constexpr (Batched) check_rows(waiting.back().about(0).dims[0], true);
  }
  source_.read(from);
  if (!from.apply()) return;
  drop();
  waiting_ = std::move(waiting);
  pass(behind);
}

template <bool Batched>
bool mapped_dataset<Batched>::next_in(datum& to) {
  if (waiting_.empty()) return detail::read_unit(source_, to);
  std::swap(to, waiting_.front());
  waiting_.pop_front();
  return true;
}

template <bool Batched>
bool mapped_dataset<Batched>::next_in_flight() {
  auto& place = threads_->next_place();
#if defined(__cpp_exceptions)
  try {
#endif
    has_ended_ = !detail::read_unit(source_, place.in);
    place.is_noted = !has_ended_ && notes_.is_due();
    if (place.is_noted) notes_.note(source_, place.after);
    return !has_ended_;
#if defined(__cpp_exceptions)
  } catch (...) {
    failure_ = std::current_exception();
    return false;
  }
#endif
}

template <bool Batched>
void mapped_dataset<Batched>::take_oldest(datum& out) {
  auto& place = threads_->oldest();
  ++behind_;
  if (place.is_noted) at_.swap(place.after), behind_ = 0;
  threads_->take(out);
}

template <bool Batched>
void mapped_dataset<Batched>::go_to(const std::vector<std::byte>& at, std::int64_t behind) {
  position_reader from(at, true);
  source_.read(from);
  pass(behind);
}

template <bool Batched>
void mapped_dataset<Batched>::start() {
  if (threads_ != nullptr) return;
  threads_ = detail::make_owned<detail::map_threads>(
      [f = f_, spec = spec_](const datum& from, datum& to) { prepare_and_call(f, spec, from, to); }, how_.parallel,
      task_system(how_.driver));
}

template <bool Batched>
void mapped_dataset<Batched>::drop() {
  waiting_.clear();
  failure_ = nullptr;
  is_noted_ = has_ended_ = false;
  if (threads_ != nullptr) threads_->drop();
}

template <bool Batched>
mapped_dataset<Batched>::~mapped_dataset() = default;

#ifdef GRADUS_COMPILED
template class mapped_dataset<false>;
template class mapped_dataset<true>;
#endif

}  // namespace gradus
