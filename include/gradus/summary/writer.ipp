// The bodies of writer.hpp.
#pragma once
#include "../base/body.hpp"
#include "writer.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::string event_file_name(std::int64_t seconds, std::string_view host_and_suffix, int again) {
  const auto padded = [](std::int64_t n, std::size_t width) {
    const std::string digits = text(n);
    return text(std::string(width - std::min(width, digits.size()), '0'), digits);
  };
  std::string name = text(event_file_prefix, padded(seconds, 10), '.', host_and_suffix);
  if (again > 0) name += text('.', padded(again, 3));
  return name;
}

}  // namespace gradus

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY bool is_event_file_name(std::string_view name) {
  if (!name.starts_with(event_file_prefix)) return false;
  name.remove_prefix(event_file_prefix.size());
  return name.size() > 10 && name[10] == '.' && name.find_first_not_of("0123456789") == 10;
}

GRADUS_BODY std::string next_event_file_name(std::span<const std::string> names, std::int64_t now,
                                             std::string_view host_and_suffix) {
  std::string_view newest;
  for (const auto& name : names)
    if (is_event_file_name(name)) newest = std::max<std::string_view>(newest, name);
  std::int64_t seconds = now;
  if (!newest.empty()) {
    std::int64_t last = 0;
    for (char c : newest.substr(event_file_prefix.size(), 10)) last = 10 * last + (c - '0');
    seconds = std::max(now, last);
  }
  for (int again = 0; again < 1000; ++again)
    if (auto name = event_file_name(seconds, host_and_suffix, again); name > newest) return name;
  if (seconds >= last_event_second)
    raise(status::failed_precondition,
          text("no event file name sorts after \"", newest, "\", so viewers would ignore a new one; move it away"));
  return event_file_name(seconds + 1, host_and_suffix);  // another host's file, this second
}

GRADUS_BODY std::string host_name() {
#if defined(__unix__) || defined(__APPLE__)
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0') return name;
#endif
  return "localhost";
}

}  // namespace gradus::detail
