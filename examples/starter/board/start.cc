// From reset to main on a Cortex-M, and out through semihosting with main's result as exit code of the emulator.
// Linked with board programs only (hence .cc: the globs take *.cpp).
#include "board.hpp"

extern "C" {
extern std::uint32_t stack_top, data_image, data_first, data_last, bss_first, bss_last;
extern void (*first_constructor)();
extern void (*last_constructor)();
int program() __asm("main");  // C++ does not let a program call main by its name
void* __dso_handle = nullptr;
}

namespace {
[[noreturn]] void fault() { board::leave(99); }

}  // namespace

extern "C" [[noreturn]] void reset() {
#if defined(__ARM_FP)
  *reinterpret_cast<volatile std::uint32_t*>(0xE000ED88) |= 0xFu << 20;  // CPACR: the floating-point unit on
  __asm volatile("dsb\n isb");
#endif
  for (std::uint32_t *from = &data_image, *to = &data_first; to != &data_last;) *to++ = *from++;
  for (std::uint32_t* to = &bss_first; to != &bss_last;) *to++ = 0;
  for (auto constructor = &first_constructor; constructor != &last_constructor; ++constructor) (*constructor)();
  board::leave(program());
}

extern "C"
    [[gnu::used, gnu::section(".vectors")]] void (*const vectors[16])() = {reinterpret_cast<void (*)()>(&stack_top),
                                                                           reset,
                                                                           fault,
                                                                           fault,
                                                                           fault,
                                                                           fault,
                                                                           fault,
                                                                           nullptr,
                                                                           nullptr,
                                                                           nullptr,
                                                                           nullptr,
                                                                           fault,
                                                                           fault,
                                                                           nullptr,
                                                                           fault,
                                                                           fault};
