// The bodies of position.hpp.
#pragma once
#include "../base/body.hpp"
#include "position.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::int64_t position_reader::number(std::int64_t least, std::int64_t most, std::string_view what) {
  std::int64_t value = 0;
  const auto from = bytes(sizeof value, what);
  std::memcpy(&value, from.data(), sizeof value);
  if (value < least || value > most)
    raise(status::data_loss, text("the saved input position is damaged: expected ", what, " from ", least, " to ", most,
                                  ", found ", value));
  return value;
}

GRADUS_BODY std::span<const std::byte> position_reader::bytes(std::uint64_t n, std::string_view what) {
  if (n > in_.size())
    raise(status::data_loss,
          text("the saved input position is damaged: expected ", n, " bytes for ", what, ", found ", in_.size()));
  const auto piece = in_.first(static_cast<std::size_t>(n));
  in_ = in_.subspan(static_cast<std::size_t>(n));
  return piece;
}

}  // namespace gradus
