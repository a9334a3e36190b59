// What an edge program may do to the world: say a line, and leave. On a board through the debugger (ARM semihosting),
// here through stdio. Floating-point numbers are said as bits, so that equal text means equal numbers.
#pragma once
#include <bit>
#include <cstdint>
#if (!defined(__ARM_EABI__) && !defined(__riscv)) || defined(__linux__)
#include <cstdio>
#include <cstdlib>
#else
#define BOARD_IS_BARE
#endif

namespace board {

#if defined(BOARD_IS_BARE)
// A call of the debugger: ARM's semihosting, which RISC-V has taken over. Returns its answer.
inline std::uintptr_t ask_debugger(std::uintptr_t what, const void* with) {
#if defined(__riscv)
  register std::uintptr_t operation __asm("a0") = what;
  register const void* argument __asm("a1") = with;
  __asm volatile(".balign 16\n.option push\n.option norvc\nslli x0, x0, 0x1f\nebreak\nsrai x0, x0, 7\n.option pop"
                 : "+r"(operation)
                 : "r"(argument)
                 : "memory");
#else
  register std::uintptr_t operation __asm("r0") = what;
  register const void* argument __asm("r1") = with;
  __asm volatile("bkpt 0xAB" : "+r"(operation) : "r"(argument) : "memory");
#endif
  return operation;
}
#endif

inline void say(const char* text) {
#if defined(BOARD_IS_BARE)
  ask_debugger(0x04, text);  // SYS_WRITE0
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
#if defined(BOARD_IS_BARE)
  const std::uintptr_t block[2] = {0x20026, static_cast<std::uintptr_t>(code)};  // ADP_Stopped_ApplicationExit
  ask_debugger(0x20, block);                                                     // SYS_EXIT_EXTENDED
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
