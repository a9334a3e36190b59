// What the simplest user writes: the umbrella, and something of it.
#if __has_include(<gradus/gradus.hpp>)
#include <gradus/gradus.hpp>
#endif
#include <gradus/base/random.hpp>
#include <gradus/base/version.hpp>

#include <cstdio>

int main() {
  const auto words = gradus::philox(0)({0, 0, 0, 0});
  std::printf("%d.%d.%d\n", GRADUS_VERSION_MAJOR, GRADUS_VERSION_MINOR, GRADUS_VERSION_PATCH);
  return words[0] == 0x6627e8d5u ? 0 : 1;
}
