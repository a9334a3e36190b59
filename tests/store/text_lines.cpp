#include "gradus/store/text_lines.hpp"

#include <doctest/doctest.h>

#include <string>

using gradus::text_lines;

namespace {
std::vector<std::string> lines_of(std::string_view content) {
  const auto* first = reinterpret_cast<const std::byte*>(content.data());
  text_lines lines(std::vector<std::byte>(first, first + content.size()));
  std::vector<std::string> out;
  for (std::string_view line; lines.next(line);) out.emplace_back(line);
  CHECK(lines.taken() == static_cast<std::int64_t>(out.size()));
  std::string_view none = "untouched";
  CHECK_FALSE(lines.next(none));
  CHECK(none == "untouched");
  return out;
}
using list = std::vector<std::string>;
}  // namespace

TEST_CASE("text_lines: what ends a line") {
  CHECK(lines_of("").empty());
  CHECK(lines_of("a") == list{"a"});
  CHECK(lines_of("a\n") == list{"a"});
  CHECK(lines_of("a\nb") == list{"a", "b"});
  CHECK(lines_of("a\r\nb\r\n") == list{"a", "b"});
  CHECK(lines_of("a\n\nb\n\n") == list{"a", "", "b", ""});
  CHECK(lines_of("\n") == list{""});
  CHECK(lines_of("a\r") == list{"a"});
  // Only the one before the end: spaces and other returns are the token's own.
  CHECK(lines_of(" a \r\r\nb\rc\n") == list{" a \r", "b\rc"});
  CHECK(lines_of(std::string_view("a\0b\n", 4)) == list{std::string("a\0b", 3)});
}
