// --limits of both tools: what a file may cost (gradus/store/reader_limits.hpp).
#pragma once
#include <charconv>
#include <gradus/store/reader_limits.hpp>
#include <string_view>

namespace tool {

// Of this process; main sets them.
inline gradus::reader_limits limits = {};

inline constexpr const char* limits_help =
    "what a file may cost: entries=N (names), record_bytes=N, inflated_bytes=N and inflated_times=N (what compressed "
    "data may become), file_bytes=N, empty_rows=1, with commas between; or none, for files that are trusted";

// "entries=1000000,inflated_times=500". Raises invalid_argument for anything else.
inline gradus::reader_limits limits_of(std::string_view said) {
  if (said == "none") return gradus::reader_limits::none();
  gradus::reader_limits out;
  for (auto rest = said; !rest.empty();) {
    const auto word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    const auto key = word.substr(0, word.find('='));
    const auto value = word.substr(std::min(key.size() + 1, word.size()));
    std::uint64_t n = 0;
    const auto [end, failed] = std::from_chars(value.data(), value.data() + value.size(), n);
    std::uint64_t* const to = key == "entries"          ? &out.entries
                              : key == "record_bytes"   ? &out.record_bytes
                              : key == "inflated_bytes" ? &out.inflated_bytes
                              : key == "inflated_times" ? &out.inflated_times
                              : key == "file_bytes"     ? &out.file_bytes
                                                        : nullptr;
    if (failed != std::errc{} || end != value.data() + value.size() || (to == nullptr && key != "empty_rows"))
      gradus::raise(gradus::status::invalid_argument,
                    gradus::text("--limits is \"", said, "\"; expected none, or ", limits_help));
    if (to != nullptr)
      *to = n;
    else
      out.empty_rows = n != 0;
  }
  return out;
}

}  // namespace tool
