// The page about logs shows the bytes of files; these are the files that tests have written.
#pragma once
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdio>
#include <fstream>
#include <span>
#include <sstream>
#include <string>

namespace log_page {

// Lines of 16 bytes: where they begin, their numbers, and their letters.
inline std::string dump_of(std::span<const std::byte> all) {
  std::string dump;
  for (std::size_t at = 0; at < all.size(); at += 16) {
    char part[32];
    std::snprintf(part, sizeof part, "%06zx  ", at);
    std::string line = part, letters;
    for (std::size_t i = at; i < at + 16; ++i) {
      if (i >= all.size()) {
        line += "   ";
        continue;
      }
      std::snprintf(part, sizeof part, "%02x ", static_cast<unsigned>(all[i]));
      line += part;
      const char c = static_cast<char>(all[i]);
      letters += c >= 32 && c < 127 ? std::string(1, c) : "\u00b7";
    }
    dump += line + " " + letters + "\n";
  }
  return dump;
}
inline void must_show(std::span<const std::byte> file) {
  std::ifstream page(GRADUS_SOURCE_DIR "/docs/formats/cluster_log.md");
  std::stringstream content;
  content << page.rdbuf();
  const std::string dump = dump_of(file);
  CHECK_MESSAGE(content.str().find(dump) != std::string::npos, "docs/formats/cluster_log.md should hold\n" << dump);
}

}  // namespace log_page
