// shuffle gives elements in random order. It draws them from a window that moves over the source.
//
// The window holds `buffer` elements. A draw takes one of them, all with the same probability, and the next element of
// the source takes its place; at the end of the source the window empties. So an element never comes more than `buffer`
// places early, and if the window holds the whole source, every order is equally likely. This is tf.data's shuffle, but
// the draws are those of base/random.hpp, so the orders differ from TensorFlow's.
//
// Each iteration (round of a repeat above) has an order of its own; with reshuffle_each_iteration = false all have the
// same one. An order is a pure function of the seed, the iteration and the number of elements. The default seed is 0,
// not a random one, so two runs of a program without seeds are the same.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../base/random.hpp"
#include "element_store.hpp"
#include "stage.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// Returns the random stream of one iteration, which has a key of its own, drawn from the seed.
constexpr random_stream stream_of_iteration(std::uint64_t seed, std::int64_t iteration) {
  constexpr std::uint32_t shuffle_stream = 0x73687566;
  const auto n = static_cast<std::uint64_t>(iteration);
  const auto w = philox(seed)(
      {static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(n >> 32), shuffle_stream, shuffle_stream});
  return {std::uint64_t{w[1]} << 32 | w[0], 0};
}

struct shuffle_settings {
  std::int64_t buffer;
  std::uint64_t seed;
  bool reshuffle;

  void check() const;
  random_stream stream(std::int64_t iteration) const { return stream_of_iteration(seed, reshuffle ? iteration : 0); }
  std::string text_of() const;
};

// The window over a source that can give any element at any time. It holds the numbers of elements. Its state is how
// many were drawn, from which the window is built again.
class index_window {
public:
  index_window(const shuffle_settings& s, std::int64_t size);
  void start(std::int64_t iteration);
  void start_next() { start(iteration_ + 1); }
  bool empty() const { return filled_ == 0; }
  // Returns the number of the next element.
  std::int64_t draw();
  void write(position_writer& to) const;
  void read(position_reader& from);

private:
  shuffle_settings settings_;
  std::int64_t size_;
  std::vector<std::int64_t> slots_;
  random_stream stream_;
  std::int64_t iteration_ = 0, drawn_ = 0;
  std::int64_t entered_ = 0, filled_ = 0;  // elements that entered the window; elements that are in it
};

}  // namespace detail

// The shuffle over a source that is read in order. The window holds copies of elements. A saved position holds either
// these copies, or the source's position at the beginning of the iteration and the number of elements drawn since,
// whichever is smaller. The latter is used only if returning there reads at most twice the window, and if the source
// can be read again (it has no external state).
template <dataset Source>
class shuffled_dataset final : public composable<shuffled_dataset<Source>> {
  static_assert(!batched_dataset<Source>, "gradus: shuffle comes before batch: it shuffles elements");

public:
  shuffled_dataset(Source source, std::int64_t buffer, std::uint64_t seed, bool reshuffle)
      : settings_{buffer, seed, reshuffle}, source_(std::move(source)), store_(source_.element_spec()) {
    settings_.check();
    stream_ = settings_.stream(0);
  }

  const components& element_spec() const { return source_.element_spec(); }

  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
    std::int64_t done = 0;
    while (done < n && draw([&](std::size_t slot) {
             if (!out.empty()) store_.copy_out(slot, element_spec(), out, first + done);
           }))
      ++done;
    return done;
  }
  bool pull(datum& out) {
    return draw([&](std::size_t slot) { store_.copy_out(slot, element_spec(), out); });
  }
  std::int64_t cardinality() const { return source_.cardinality(); }
  std::string external_state() const { return source_.external_state(); }
  void rewind() {
    source_.rewind();
    start(iteration_ + 1);
  }
  void define(std::string& to) const {
    source_.define(to);
    to += settings_.text_of();
  }
  void write(position_writer& to) const {
    to.number(iteration_);
    to.number(drawn_);
    const bool again = !broke_ && drawn_ <= settings_.buffer &&
                       (drawn_ == 0 || (!begun_.empty() && begun_.size() < store_.size_of(filled()))) &&
                       source_.external_state().empty();
    to.number(again ? 1 : 0);
    if (again) {
      if (drawn_ == 0) return source_.write(to);
      return to.bytes(detail::const_span(begun_));
    }
    to.number(static_cast<std::int64_t>(stream_.next));
    to.number(ended_ ? 1 : 0);
    to.number(filled_);
    store_.write(to, filled());
    source_.write(to);
  }
  void read(position_reader& from) {
    constexpr auto most = std::numeric_limits<std::int64_t>::max() - 1;
    const auto iteration = from.number(0, most, "the iteration of shuffle");
    const auto drawn = from.number(0, most, "the number of elements drawn by shuffle");
    if (from.number(0, 1, "how shuffle's buffer is stored") == 1) {
      if (drawn > settings_.buffer)
        raise(status::data_loss, text("the saved input position is damaged: shuffle drew ", drawn));
      source_.read(from);
      if (!from.apply()) return;
      start(iteration);
      while (drawn_ < drawn && draw([](std::size_t) {})) {
      }
      if (drawn_ < drawn)
        raise(status::data_loss, text("the saved input position is after ", drawn, " elements of shuffle, but its ",
                                      "source has only ", drawn_, "; it is another one, or depends on more"));
      return;
    }
    const auto draws = from.number(0, most, "the draws of shuffle");
    const bool ended = from.number(0, 1, "whether shuffle's source has ended") == 1;
    const auto filled = store_.read(from, element_spec(), settings_.buffer, "shuffle's buffer");
    source_.read(from);
    if (!from.apply()) return;
    start(iteration);
    broke_ = true;  // the place where the iteration began is not known
    drawn_ = drawn, ended_ = ended, filled_ = static_cast<std::int64_t>(filled);
    stream_.next = static_cast<std::uint64_t>(draws);
  }

private:
  void start(std::int64_t iteration) {
    stream_ = settings_.stream(iteration);
    iteration_ = iteration;
    filled_ = drawn_ = 0, ended_ = broke_ = false;
    failed_ = nullptr;
    begun_.clear();
  }
  std::size_t filled() const { return static_cast<std::size_t>(filled_); }
  // Passes the element in a random slot to `give` and fills its place. Returns false if there is none. Where the source
  // raises, the element that was drawn is given, and the next call raises.
  bool draw(auto&& give) {
#if defined(__cpp_exceptions)
    if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
#endif
    if (drawn_ == 0 && filled_ == 0) {
      begun_.clear();
      position_writer to(begun_);
      source_.write(to);
    }
    while (!ended_ && filled_ < settings_.buffer) take_in(filled_);
    if (filled_ == 0) return false;
    const std::int64_t slot = stream_.below(static_cast<std::uint32_t>(filled_));
    give(static_cast<std::size_t>(slot));
    ++drawn_;
    if (!take_next(slot)) store_.move(static_cast<std::size_t>(--filled_), static_cast<std::size_t>(slot));
    return true;
  }
  // Returns false if the slot, whose element was drawn, has no other one: the source has ended or raised.
  bool take_next(std::int64_t slot) {
#if defined(__cpp_exceptions)
    try {
#endif
      if (!ended_) take_in(slot);
#if defined(__cpp_exceptions)
    } catch (...) {  // it may have written a part of an element
      failed_ = std::current_exception();
      return false;
    }
#endif
    return !ended_;
  }
  // Reads the next element into a slot, which is the one after the last or one whose element was drawn. Notes the end
  // of the source.
  void take_in(std::int64_t slot) {
    const bool before = std::exchange(broke_, true);  // stays so if the source raises
    if (!store_.take(source_, static_cast<std::size_t>(slot)))
      ended_ = true;
    else if (slot == filled_)
      ++filled_;
    broke_ = before;
  }

  detail::shuffle_settings settings_;
  Source source_;
  detail::element_store store_;
  random_stream stream_;
  std::int64_t iteration_ = 0, filled_ = 0, drawn_ = 0;
  std::vector<std::byte> begun_;  // the source's position when this iteration began; empty: not known
  bool ended_ = false;
  bool broke_ = false;  // the window is not what the source gives from begun_ on
  std::exception_ptr failed_;
};

// The shuffle over a source that can give any element at any time. It holds no copies, and its position is two numbers.
template <indexed_dataset Source>
class shuffled_dataset<Source> final : public composable<shuffled_dataset<Source>> {
public:
  shuffled_dataset(Source source, std::int64_t buffer, std::uint64_t seed, bool reshuffle)
      : settings_{checked({buffer, seed, reshuffle})}, source_(std::move(source)), window_(settings_, source_.size()) {}

  const components& element_spec() const { return source_.element_spec(); }

  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
    std::int64_t done = 0;
    for (; done < n && !window_.empty(); ++done) {
      const std::int64_t i = window_.draw();
      if (!out.empty()) source_.element(i, out, first + done);
    }
    return done;
  }
  std::int64_t cardinality() const { return source_.cardinality(); }
  std::string external_state() const { return source_.external_state(); }
  void rewind() { window_.start_next(); }
  void define(std::string& to) const {
    source_.define(to);
    to += settings_.text_of();
  }
  void write(position_writer& to) const { window_.write(to); }
  void read(position_reader& from) { window_.read(from); }

private:
  static detail::shuffle_settings checked(const detail::shuffle_settings& s) {
    s.check();
    return s;
  }

  detail::shuffle_settings settings_;
  Source source_;
  detail::index_window window_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "shuffle.ipp"
#endif
