// The bodies of shuffle.hpp.
#pragma once
#include "../base/body.hpp"
#include "shuffle.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void shuffle_settings::check() const {
  if (buffer < 1 || buffer > std::numeric_limits<std::uint32_t>::max())
    raise(status::invalid_argument,
          text("shuffle(", buffer, "): expected a buffer of 1 to ", std::numeric_limits<std::uint32_t>::max(),
               " elements; as many as the dataset has make every order equally likely"));
}

GRADUS_BODY std::string shuffle_settings::text_of() const {
  return text(".shuffle(", buffer, ", ", seed, reshuffle ? "" : ", the same each iteration", ")");
}

GRADUS_BODY index_window::index_window(const shuffle_settings& s, std::int64_t size)
    : settings_(s), size_(size), slots_(static_cast<std::size_t>(std::min(s.buffer, size))) {
  start(0);
}

GRADUS_BODY void index_window::start(std::int64_t iteration) {
  stream_ = settings_.stream(iteration);
  iteration_ = iteration, drawn_ = 0;
  filled_ = entered_ = static_cast<std::int64_t>(slots_.size());
  for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i] = static_cast<std::int64_t>(i);
}

GRADUS_BODY std::int64_t index_window::draw() {
  std::int64_t& slot = slots_[stream_.below(static_cast<std::uint32_t>(filled_))];
  const std::int64_t drawn = slot;
  slot = entered_ < size_ ? entered_++ : slots_[static_cast<std::size_t>(--filled_)];
  ++drawn_;
  return drawn;
}

GRADUS_BODY void index_window::write(position_writer& to) const {
  to.number(iteration_);
  to.number(drawn_);
}

GRADUS_BODY void index_window::read(position_reader& from) {
  const auto iteration = from.number(0, std::numeric_limits<std::int64_t>::max() - 1, "the iteration of shuffle");
  const auto drawn = from.number(0, size_, "the number of elements drawn by shuffle");
  if (!from.apply()) return;
  start(iteration);
  while (drawn_ < drawn) draw();
}

}  // namespace gradus::detail
