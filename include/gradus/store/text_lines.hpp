// text_lines reads the lines of a text file, one after another: vocabularies.
//
//   text_lines lines(read_file(fs, path, limits), path, limits);
//   for (std::string_view line; lines.next(line);) ...
//
// A line ends in \n or \r\n, the last one also at the end of the file. Empty lines count as lines; a file that ends in
// \n has no empty line behind it.
#pragma once
#include "../base/build.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reader_limits.hpp"

namespace gradus::inline GRADUS_BUILD {

// Owns the bytes; the lines are views into them, and live as long.
class text_lines {
public:
  // `name` is what messages call the file. `next` raises resource_exhausted for a line longer than the limits allow.
  explicit text_lines(std::vector<std::byte> bytes, std::string name = "a file of lines",
                      const reader_limits& limits = {});
  text_lines(const text_lines&) = delete;
  text_lines& operator=(const text_lines&) = delete;

  // Reads the next line without its end; returns false after the last one.
  bool next(std::string_view& line);
  // Returns how many lines have been read.
  std::int64_t taken() const { return taken_; }

private:
  std::string name_;
  reader_limits limits_;
  std::vector<std::byte> bytes_;
  std::string_view rest_;
  std::int64_t taken_ = 0;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "text_lines.ipp"
#endif
