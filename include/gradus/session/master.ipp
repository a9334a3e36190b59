// The bodies of master.hpp.
#pragma once
#include "../base/body.hpp"
#include "master.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY bool is_protocol(std::string_view s) {
  for (char c : s)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '+')) return false;
  return !s.empty();
}

GRADUS_BODY bool split_address(std::string_view address, std::string_view& host, int& port) {
  const auto colon = address.rfind(':');
  if (colon == std::string_view::npos) return false;
  host = address.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (host.empty() || (!bracketed && host.find_first_of(":[]") != std::string_view::npos)) return false;
  if (host.find_first_of("/ \t\n@?#,") != std::string_view::npos) return false;
  const std::string_view digits = address.substr(colon + 1);
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  return problem == std::errc{} && end == digits.data() + digits.size() && digits.front() != '-' && port >= 0 &&
         port <= 65535;
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY master parse_master(std::string_view given) {
  master m{std::string(given), {}, {}, 0};
  if (given.empty() || given == "local") return m;
  const auto colon = given.find("://");
  std::string_view host;
  if (colon == std::string_view::npos || !detail::is_protocol(given.substr(0, colon)) ||
      !detail::split_address(given.substr(colon + 3), host, m.port))
    raise(status::invalid_argument,
          text("\"", given, "\" is no master: expected '', 'local' or 'grpc://host:port' (a server's target())"));
  m.protocol = given.substr(0, colon), m.host = host;
  return m;
}

}  // namespace gradus
