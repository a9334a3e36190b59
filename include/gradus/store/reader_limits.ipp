// The bodies of reader_limits.hpp.
#pragma once
#include "../base/body.hpp"
#include "reader_limits.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::string inflated_too_far(std::uint64_t compressed, const reader_limits& limits) {
  return text("its ", compressed, " compressed bytes become more than ", limits.inflated_from(compressed),
              " bytes, the limit; raise reader_limits::inflated_bytes (", limits.inflated_bytes,
              ") or inflated_times (", limits.inflated_times, ") if the file is to be trusted");
}

GRADUS_BODY std::string too_many_entries(std::string_view what, const reader_limits& limits) {
  return text("it has more than ", limits.entries, ' ', what,
              ", the limit; raise reader_limits::entries if the file is to be trusted");
}

GRADUS_BODY std::string record_too_long(std::string_view what, std::uint64_t bytes, const reader_limits& limits) {
  return text(what, " takes ", bytes, " bytes, the limit is ", limits.record_bytes,
              "; raise reader_limits::record_bytes if the file is to be trusted");
}

GRADUS_BODY std::string empty_rows(std::uint64_t rows) {
  return text("it claims ", rows,
              " rows that take no bytes, so that its size says nothing about how many there are; set "
              "reader_limits::empty_rows if the file is to be trusted");
}

}  // namespace gradus::detail
