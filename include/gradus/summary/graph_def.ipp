// The bodies of graph_def.hpp.
#pragma once
#include "../base/body.hpp"
#include "graph_def.hpp"

namespace gradus::detail {

GRADUS_BODY std::string shortest_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view s(buffer, static_cast<std::size_t>(end - buffer));  // [-]d[.ddd]e[+-]dd
  const auto e = s.find('e');
  int exponent = 0;
  std::from_chars(buffer + e + (s[e + 1] == '+' ? 2 : 1), end, exponent);
  if (exponent < -4 || exponent >= 16) return std::string(s);

  std::string digits;
  for (char c : s.substr(0, e))
    if (c != '-' && c != '.') digits += c;
  std::string out = std::signbit(value) ? "-" : "";
  if (exponent < 0) return out + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

GRADUS_BODY void wire_sink::types(std::uint32_t number, std::string_view, std::span<const dtype> v) {
  std::vector<std::int64_t> numbers;
  for (dtype t : v) numbers.push_back(static_cast<std::int64_t>(t));
  w.packed(number, numbers);
}

GRADUS_BODY void text_sink::line(std::string_view name, std::string_view value) {
  out.append(indent, ' ').append(name).append(": ").append(value) += '\n';
}

GRADUS_BODY void text_sink::string(std::uint32_t, std::string_view name, std::string_view v) {
  std::string quoted = "\"";
  for (char c : v) switch (c) {
    case '\n': quoted += "\\n"; break;
    case '\r': quoted += "\\r"; break;
    case '\t': quoted += "\\t"; break;
    case '"': quoted += "\\\""; break;
    case '\'': quoted += "\\'"; break;
    case '\\': quoted += "\\\\"; break;
    default:
      if (const auto byte = static_cast<unsigned char>(c); byte >= 0x20 && byte < 0x7F) {
        quoted += c;
      } else {
        quoted += '\\';
        for (int shift : {6, 3, 0}) quoted += static_cast<char>('0' + ((byte >> shift) & 7));
      }
    }
  line(name, quoted + "\"");
}

GRADUS_BODY void text_sink::integers(std::uint32_t n, std::string_view name, std::span<const std::int64_t> v) {
  for (auto x : v) integer(n, name, x);
}

GRADUS_BODY void text_sink::booleans(std::uint32_t n, std::string_view name, std::span<const std::int64_t> v) {
  for (auto x : v) boolean(n, name, x != 0);
}

GRADUS_BODY void text_sink::types(std::uint32_t n, std::string_view name, std::span<const dtype> v) {
  for (auto x : v) type(n, name, x);
}

}  // namespace gradus::detail

namespace gradus {

GRADUS_BODY void encode_graph_def(std::vector<std::byte>& out, const graph_def& g) {
  wire_writer w(out);
  detail::wire_sink sink{w};
  detail::write_graph_def(sink, g);
}

GRADUS_BODY std::string to_pbtxt(const graph_def& g) {
  std::string out;
  detail::text_sink sink{out};
  detail::write_graph_def(sink, g);
  return out;
}

}  // namespace gradus
