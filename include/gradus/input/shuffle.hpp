// shuffle: elements in random order from a window that moves over the source.
//
// The window holds `buffer` elements; a draw takes one of them, all equally likely, and the next element of the source
// takes its place; at the end the window empties. So an element never comes more than `buffer` places early, and if the
// window holds the whole source every order is equally likely. This is tf.data's shuffle; the draws are those of
// base/random.hpp, so the orders are not TensorFlow's.
//
// Iterations (rounds of a repeat above) have an order each, or all the same with reshuffle_each_iteration = false. An
// order is a pure function of the seed, the iteration and the number of elements. The default seed is 0, not a random
// one: a program without seeds gives the same run twice.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../base/random.hpp"
#include "stage.hpp"

namespace gradus {

namespace detail {

// The stream of one iteration: a key of its own, drawn from the seed.
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

  void check() const {
    if (buffer < 1 || buffer > std::numeric_limits<std::uint32_t>::max())
      raise(status::invalid_argument,
            text("shuffle(", buffer, "): expected a buffer of 1 to ", std::numeric_limits<std::uint32_t>::max(),
                 " elements; as many as the dataset has make every order equally likely"));
  }
  random_stream stream(std::int64_t iteration) const { return stream_of_iteration(seed, reshuffle ? iteration : 0); }
  std::string text_of() const {
    return text(".shuffle(", buffer, ", ", seed, reshuffle ? "" : ", the same each iteration", ")");
  }
};

// The window over a source that gives any element at any time: it holds numbers of elements, and its state is how many
// were drawn, from which it is built again.
class index_window {
public:
  index_window(const shuffle_settings& s, std::int64_t size)
      : settings_(s), size_(size), slots_(static_cast<std::size_t>(std::min(s.buffer, size))) {
    begin(0);
  }
  void begin(std::int64_t iteration) {
    stream_ = settings_.stream(iteration);
    iteration_ = iteration, drawn_ = 0;
    filled_ = entered_ = static_cast<std::int64_t>(slots_.size());
    for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i] = static_cast<std::int64_t>(i);
  }
  void begin_next() { begin(iteration_ + 1); }
  bool empty() const { return filled_ == 0; }
  // The number of the next element.
  std::int64_t draw() {
    std::int64_t& slot = slots_[stream_.below(static_cast<std::uint32_t>(filled_))];
    const std::int64_t drawn = slot;
    slot = entered_ < size_ ? entered_++ : slots_[static_cast<std::size_t>(--filled_)];
    ++drawn_;
    return drawn;
  }
  void write(position_writer& to) const {
    to.number(iteration_);
    to.number(drawn_);
  }
  void read(position_reader& from) {
    const auto iteration = from.number(0, std::numeric_limits<std::int64_t>::max() - 1, "the iteration of shuffle");
    const auto drawn = from.number(0, size_, "the number of elements drawn by shuffle");
    if (!from.apply()) return;
    begin(iteration);
    while (drawn_ < drawn) draw();
  }

private:
  shuffle_settings settings_;
  std::int64_t size_;
  std::vector<std::int64_t> slots_;
  random_stream stream_;
  std::int64_t iteration_ = 0, drawn_ = 0;
  std::int64_t entered_ = 0, filled_ = 0;  // elements that came in; elements that are in
};

// Memory for elements, one after another; grows with what comes in, so a large buffer over a small source is small.
class element_store {
public:
  explicit element_store(const components& spec) : views_(spec.size()), offsets_(spec.size()) {
    constexpr std::size_t aligned = 16;  // components start where any of their dtypes may
    for (std::size_t k = 0; k < spec.size(); ++k) {
      views_[k] = {spec[k].type, spec[k].dims, nullptr};
      offsets_[k] = bytes_each_;
      bytes_each_ += (size_bytes(spec[k]) + aligned - 1) / aligned * aligned;
    }
  }
  std::size_t bytes_each() const { return bytes_each_; }
  void hold(std::size_t n) {
    if (bytes_.size() < n * bytes_each_) bytes_.resize(n * bytes_each_);
  }
  std::span<std::byte> first(std::size_t n) { return std::span(bytes_).first(n * bytes_each_); }
  std::span<const std::byte> first(std::size_t n) const { return std::span(bytes_).first(n * bytes_each_); }
  // Element i as arrays; valid until the next call.
  std::span<const tensor_view> arrays(std::size_t i) {
    for (std::size_t k = 0; k < views_.size(); ++k) views_[k].data = bytes_.data() + i * bytes_each_ + offsets_[k];
    return views_;
  }
  void copy_out(std::size_t i, const components& spec, std::span<const tensor_view> out, std::int64_t row) const {
    for (std::size_t k = 0; k < spec.size(); ++k)
      if (const auto n = size_bytes(spec[k]); n != 0)
        std::memcpy(row_of(out[k], spec[k], row), bytes_.data() + i * bytes_each_ + offsets_[k], n);
  }
  void move(std::size_t from, std::size_t to) {
    if (from != to && bytes_each_ != 0)
      std::memcpy(bytes_.data() + to * bytes_each_, bytes_.data() + from * bytes_each_, bytes_each_);
  }

private:
  std::vector<tensor_view> views_;
  std::vector<std::size_t> offsets_;
  std::size_t bytes_each_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace detail

// Over a source that is read in order: the window holds copies of elements, and a saved position holds them too.
template <dataset Source>
class shuffled final : public composable<shuffled<Source>> {
  static_assert(!batched_dataset<Source>, "gradus: shuffle comes before batch: it shuffles elements");

public:
  shuffled(Source source, std::int64_t buffer, std::uint64_t seed, bool reshuffle)
      : settings_{buffer, seed, reshuffle}, source_(std::move(source)), store_(source_.element_spec()) {
    settings_.check();
    stream_ = settings_.stream(0);
  }

  const components& element_spec() const { return source_.element_spec(); }

  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
    while (!ended_ && filled_ < settings_.buffer) take_in(filled_);
    std::int64_t done = 0;
    for (; done < n && filled_ > 0; ++done) {
      const std::int64_t slot = stream_.below(static_cast<std::uint32_t>(filled_));
      if (!out.empty()) store_.copy_out(static_cast<std::size_t>(slot), element_spec(), out, first + done);
      if (!ended_) take_in(slot);
      if (ended_) store_.move(static_cast<std::size_t>(--filled_), static_cast<std::size_t>(slot));
    }
    return done;
  }
  void rewind() {
    source_.rewind();
    stream_ = settings_.stream(++iteration_);
    filled_ = 0, ended_ = false;
  }
  void define(std::string& to) const {
    source_.define(to);
    to += settings_.text_of();
  }
  void write(position_writer& to) const {
    to.number(iteration_);
    to.number(static_cast<std::int64_t>(stream_.next));
    to.number(ended_ ? 1 : 0);
    to.number(filled_);
    to.bytes(store_.first(static_cast<std::size_t>(filled_)));
    source_.write(to);
  }
  void read(position_reader& from) {
    constexpr auto most = std::numeric_limits<std::int64_t>::max() - 1;
    const auto iteration = from.number(0, most, "the iteration of shuffle");
    const auto draws = from.number(0, most, "the draws of shuffle");
    const bool ended = from.number(0, 1, "whether shuffle's source has ended") == 1;
    const auto room =
        store_.bytes_each() == 0 ? settings_.buffer : static_cast<std::int64_t>(from.left() / store_.bytes_each());
    const auto filled = from.number(0, std::min(settings_.buffer, room), "the elements in shuffle's buffer");
    const auto held = from.bytes(static_cast<std::uint64_t>(filled) * store_.bytes_each(), "shuffle's buffer");
    source_.read(from);
    if (!from.apply()) return;
    iteration_ = iteration, ended_ = ended, filled_ = filled;
    stream_ = settings_.stream(iteration);
    stream_.next = static_cast<std::uint64_t>(draws);
    store_.hold(static_cast<std::size_t>(filled));
    if (!held.empty()) std::memcpy(store_.first(static_cast<std::size_t>(filled)).data(), held.data(), held.size());
  }

private:
  // Reads the next element into a slot, the one after the last or one that was drawn; notes the end.
  void take_in(std::int64_t slot) {
    store_.hold(static_cast<std::size_t>(slot) + 1);
    if (source_.pull(store_.arrays(static_cast<std::size_t>(slot)), 0, 1) == 0)
      ended_ = true;
    else if (slot == filled_)
      ++filled_;
  }

  detail::shuffle_settings settings_;
  Source source_;
  detail::element_store store_;
  random_stream stream_;
  std::int64_t iteration_ = 0, filled_ = 0;
  bool ended_ = false;
};

// Over a source that gives any element at any time: no copies, and a position of two numbers.
template <indexed_dataset Source>
class shuffled<Source> final : public composable<shuffled<Source>> {
public:
  shuffled(Source source, std::int64_t buffer, std::uint64_t seed, bool reshuffle)
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
  void rewind() { window_.begin_next(); }
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
