// From reset to main on a bare RISC-V, and out through semihosting (hence .cc: the globs take *.cpp). No C
// library is linked, neither Linux's (64 bits) nor another (32 bits): what the library needs of C stands here.
#include <gradus/base/math.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>

#include "../../../examples/starter/board/board.hpp"

extern "C" {
extern std::uint64_t bss_first, bss_last;
extern void (*first_constructor)();
extern void (*last_constructor)();
int program() __asm("main");  // C++ does not let a program call main by its name
void* __dso_handle = nullptr;

[[noreturn, gnu::used]] void fault() { board::leave(99); }
[[noreturn, gnu::used]] void begin() {
  for (std::uint64_t* to = &bss_first; to != &bss_last;) *to++ = 0;
  for (auto constructor = &first_constructor; constructor != &last_constructor; ++constructor) (*constructor)();
  board::leave(program());
}
[[gnu::naked, gnu::section(".vectors")]] void reset() {
  __asm volatile(
      ".option arch, +zicsr\n"  // named by no -march for which a compiler has its libgcc
      "la sp, stack_top\n"
      "la t0, fault\n"
      "csrw mtvec, t0\n"
#if defined(__riscv_flen)
      "li t0, 0x2000\n"  // mstatus.FS: the floating-point unit on
      "csrs mstatus, t0\n"
      "csrw fcsr, zero\n"
#endif
      "j begin");
}

[[gnu::used, gnu::optimize("no-tree-loop-distribute-patterns")]] void* memcpy(void* to, const void* from,
                                                                              std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) static_cast<char*>(to)[i] = static_cast<const char*>(from)[i];
  return to;
}
[[gnu::used, gnu::optimize("no-tree-loop-distribute-patterns")]] void* memset(void* to, int byte, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) static_cast<char*>(to)[i] = static_cast<char>(byte);
  return to;
}
[[gnu::used, gnu::optimize("no-tree-loop-distribute-patterns")]] void* memmove(void* to, const void* from,
                                                                               std::size_t n) {
  if (to < from) return memcpy(to, from, n);
  for (std::size_t i = n; i-- != 0;) static_cast<char*>(to)[i] = static_cast<const char*>(from)[i];
  return to;
}
[[gnu::used, gnu::optimize("no-tree-loop-distribute-patterns")]] int memcmp(const void* a, const void* b,
                                                                            std::size_t n) {
  const auto *p = static_cast<const unsigned char*>(a), *q = static_cast<const unsigned char*>(b);
  for (std::size_t i = 0; i < n; ++i)
    if (p[i] != q[i]) return p[i] < q[i] ? -1 : 1;
  return 0;
}
[[gnu::used, gnu::optimize("no-tree-loop-distribute-patterns")]] std::size_t strlen(const char* s) {
  std::size_t n = 0;
  while (s[n] != 0) ++n;
  return n;
}
[[noreturn]] void abort() { board::leave(98); }
#if __riscv_xlen == 32  // roots without an instruction for them
double square_root(double x) __asm("sqrt");
float square_root_of_float(float x) __asm("sqrtf");
[[gnu::used]] double square_root(double x) { return gradus::portable_math::detail::root_by_digits(x); }
[[gnu::used]] float square_root_of_float(float x) {  // by integers: a program may have to link no routine for doubles
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if (!(x > 0) || bits >= 0x7f800000u) return x < 0 ? std::bit_cast<float>(0x7fc00000u) : x;
  int exponent = static_cast<int>(bits >> 23);
  std::uint32_t m = bits & 0x007fffffu;
  if (exponent != 0) m |= 0x00800000u;
  for (exponent += exponent == 0; m < 0x00800000u; m <<= 1) --exponent;
  exponent -= 150;  // x = m 2^exponent
  const int more = exponent % 2 == 0 ? 2 : 1;
  const std::uint64_t radicand = static_cast<std::uint64_t>(m) << (24 + more);
  std::uint32_t root = 0;
  for (std::uint32_t digit = 1u << 24; digit != 0; digit >>= 1)
    if (const std::uint64_t next = root | digit; next * next <= radicand) root |= digit;
  exponent = (exponent - more) / 2 - 12 + 1 + 150;  // 25 digits, of which the last one rounds: none is in the middle
  return std::bit_cast<float>((static_cast<std::uint32_t>(exponent - 1) << 23) + (root >> 1) + (root & 1));
}
#endif
}
