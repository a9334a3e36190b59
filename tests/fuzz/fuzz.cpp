// A libFuzzer target for the reader that the macro GRADUS_FUZZ names: see CMakeLists.txt beside it.
#include "readers.hpp"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::reader* const target = [] {
    for (const auto& r : fuzz::readers)
      if (r.name == GRADUS_FUZZ) return &r;
    std::abort();
  }();
  fuzz::feed(*target, std::as_bytes(std::span(data, size)));
  return 0;
}
