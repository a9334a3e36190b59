// What an edge program may do to the world: say a line, and leave. On a board through the debugger (ARM semihosting),
// here through stdio. Floating-point numbers are said as bits, so that equal text means equal numbers.
#pragma once
#include <bit>
#include <cstdint>
#if !defined(__ARM_EABI__) || defined(__linux__)
#include <cstdio>
#include <cstdlib>
#endif

namespace board {

inline void say(const char* text) {
#if defined(__ARM_EABI__) && !defined(__linux__)
  register std::uintptr_t operation __asm("r0") = 0x04;  // SYS_WRITE0
  register const char* argument __asm("r1") = text;
  __asm volatile("bkpt 0xAB" : "+r"(operation) : "r"(argument) : "memory");
#else
  std::fputs(text, stdout);
#endif
}

inline void say(const char* name, std::uint32_t word) {
  char line[10] = {};
  for (unsigned i = 0; i < 8; ++i) line[i] = "0123456789abcdef"[word >> (28 - 4 * i) & 15];
  line[8] = '\n';
  say(name);
  say(" ");
  say(line);
}
inline void say(const char* name, float number) { say(name, std::bit_cast<std::uint32_t>(number)); }

// Ends the program from anywhere, as returning `code` from main does.
[[noreturn]] inline void leave(int code) {
#if defined(__ARM_EABI__) && !defined(__linux__)
  const std::uint32_t block[2] = {0x20026, static_cast<std::uint32_t>(code)};  // ADP_Stopped_ApplicationExit
  register std::uintptr_t operation __asm("r0") = 0x20;                        // SYS_EXIT_EXTENDED
  register const std::uint32_t* argument __asm("r1") = block;
  __asm volatile("bkpt 0xAB" : "+r"(operation) : "r"(argument) : "memory");
  for (;;) {
  }
#else
  std::exit(code);
#endif
}

// FNV-1a over the bits: one word for a whole array.
struct hash {
  std::uint32_t word = 2166136261u;
  void add(std::uint32_t bits) { word = (word ^ bits) * 16777619u; }
  void add(float number) { add(std::bit_cast<std::uint32_t>(number)); }
};

}  // namespace board
