// The hex dumps of docs/formats: whether a page holds the one of these bytes.
#pragma once
#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>
#include <span>
#include <sstream>
#include <string>

namespace page {

inline std::string hex_dump(std::span<const std::byte> file) {
  std::string out;
  char piece[32];
  for (std::size_t row = 0; row < file.size(); row += 16) {
    std::snprintf(piece, sizeof piece, "%06zx ", row);
    out += piece;
    std::string text;
    for (std::size_t i = row; i < row + 16; ++i) {
      const auto b = i < file.size() ? std::to_integer<unsigned>(file[i]) : 0;
      std::snprintf(piece, sizeof piece, i < file.size() ? " %02x" : "   ", b);
      out += piece;
      if (i < file.size()) text += b >= 0x20 && b < 0x7F ? static_cast<char>(b) : '.';
    }
    out += "  " + text + "\n";
  }
  return out;
}

// `name` is a file of docs/formats; `test` is __FILE__.
inline void check_holds(std::string test, const std::string& name, std::span<const std::byte> file) {
  test.replace(test.rfind("tests/codec/"), std::string::npos, "docs/formats/" + name);
  std::ifstream in(test);
  REQUIRE_MESSAGE(in.good(), test);
  std::stringstream text;
  text << in.rdbuf();
  const auto dump = hex_dump(file);
  CHECK_MESSAGE(text.str().find(dump) != std::string::npos, name << " should hold\n" << dump);
}

}  // namespace page
