// The bodies of window.hpp.
#pragma once
#include "../base/body.hpp"
#include "window.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY windowed_dataset::windowed_dataset(any_dataset source, std::int64_t size, std::int64_t shift,
                                               std::int64_t stride, bool drop_remainder)
    : source_(std::move(source)),
      size_(size),
      shift_(shift == 0 ? size : shift),
      stride_(stride),
      drop_remainder_(drop_remainder) {
  if (size < 1 || shift < 0 || stride < 1)
    raise(status::invalid_argument, text("window(", size, ", ", shift, ", ", stride,
                                         "): window size, shift and stride must be greater than zero"));
  if (__builtin_mul_overflow(size - 1, stride, &target_) || ++target_ < 1)
    raise(status::invalid_argument, text("window(", size, ", ", shift, ", ", stride, "): too large"));
  if (!has_fixed_size(source_.element_spec()))
    raise(status::invalid_argument, text("window: elements of ", to_text(source_.element_spec()),
                                         " differ in size and cannot be stacked; pad them first"));
  spec_ = detail::with_lead(drop_remainder ? size : any_extent, source_.element_spec());
}

GRADUS_BODY bool windowed_dataset::pull_unit(datum& out) {
  while (!ended_ && static_cast<std::int64_t>(held_.size()) < target_) {
    datum next;
    if (source_.pull(next))
      held_.push_back(std::move(next));
    else
      ended_ = true;
  }
  const auto n = static_cast<std::int64_t>(held_.size());
  if (n == 0 || (drop_remainder_ && n < target_)) return false;
  const std::int64_t rows = 1 + (n - 1) / stride_;
  out.conform(source_.element_spec(), rows);
  for (std::size_t k = 0; k < out.size(); ++k) {
    std::byte* to = out[k].mutable_data();
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto bytes = std::as_const(held_[static_cast<std::size_t>(i * stride_)])[k].bytes();
      if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
      to += bytes.size();
    }
  }
  if (shift_ >= n) {
    for (std::int64_t gone = n; !ended_ && gone < shift_;) {
      const std::int64_t got = source_.pull({}, 0, shift_ - gone);
      ended_ = got == 0;
      gone += got;
    }
    held_.clear();
  } else {
    held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(shift_));
  }
  return true;
}

GRADUS_BODY void windowed_dataset::rewind() {
  source_.rewind();
  held_.clear();
  ended_ = false;
}

GRADUS_BODY std::int64_t windowed_dataset::cardinality() const {
  const std::int64_t n = source_.cardinality();
  if (n < 0) return n;
  return drop_remainder_ ? (n < target_ ? 0 : (n - target_) / shift_ + 1) : n / shift_ + (n % shift_ != 0 ? 1 : 0);
}

GRADUS_BODY void windowed_dataset::define(std::string& to) const {
  source_.define(to);
  to += text(".window(", size_, ", ", shift_, ", ", stride_, drop_remainder_ ? ", drop_remainder" : "", ")");
}

GRADUS_BODY void windowed_dataset::write(position_writer& to) const {
  to.number(ended_ ? 1 : 0);
  detail::write_data(to, held_);
  source_.write(to);
}

GRADUS_BODY void windowed_dataset::read(position_reader& from) {
  const bool ended = from.number(0, 1, "whether the source of window has ended") == 1;
  auto held = detail::read_data<std::deque<datum>>(from, source_.element_spec(), "the elements of a window", target_);
  source_.read(from);
  if (from.apply()) held_ = std::move(held), ended_ = ended;
}

}  // namespace gradus
