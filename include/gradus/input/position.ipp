// The bodies of position.hpp.
#pragma once
#include <limits>

#include "../base/body.hpp"
#include "../base/deferred.hpp"
#include "position.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void position_writer::bytes(std::span<const std::byte> b) { out_.insert(out_.end(), b.begin(), b.end()); }

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

namespace detail {
GRADUS_BODY void write_definition(position_writer& to, std::string_view definition) {
  to.number(static_cast<std::int64_t>(definition.size()));
  to.bytes(detail::text_bytes(definition));
}

GRADUS_BODY void check_definition(position_reader& from, std::string_view definition) {
  const auto length = from.number(0, std::numeric_limits<std::int64_t>::max(), "the length of its definition");
  const auto bytes = from.bytes(static_cast<std::uint64_t>(length), "its definition");
  const std::string_view found(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (found != definition)
    raise(status::data_loss,
          text("the saved position is one in the input \"", found, "\", but this input is \"", definition,
               "\"; build the same input, or set restore_input = "
               "saved_input::if_it_fits to read this one from its beginning"));
}

GRADUS_BODY void check_end(const position_reader& from) {
  if (from.left() != 0)
    raise(status::data_loss,
          text("the saved input position is damaged: expected its end, found ", from.left(), " bytes more"));
}
}  // namespace detail

}  // namespace gradus
