// What a program takes on an emulated board, on lines that begin with #: they are not compared with what other machines
// say, and only a Cortex-M says them.
//
// Instructions of a piece of the program: the board's clock is its instructions (qemu -icount shift=0), so one is a
// nanosecond, and a tick of the processor's timer, at 25 MHz, is forty of them. Stack: the memory between the program's
// variables and the top of the stack is painted before main, and the lowest word that has changed is looked for.
#pragma once
#include "../../examples/starter/board/board.hpp"

namespace board {

#if defined(BOARD_IS_BARE) && defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
class instructions {
public:
  instructions() {  // reload, value, control: it runs by the core's clock
    timer()[1] = most;
    timer()[2] = 0;
    timer()[0] = 5;
  }
  void say() const { board::say("# instructions", (most - timer()[2]) * 40); }

private:
  static constexpr std::uint32_t most = 0xffffff;  // 671 million instructions
  static volatile std::uint32_t* timer() { return reinterpret_cast<volatile std::uint32_t*>(0xe000e010); }
};

extern "C" std::uint32_t end, stack_top;  // memory.ld: behind the variables, and where the stack begins
inline constexpr std::uint32_t paint = 0x5ca1ab1e;
[[gnu::noinline, gnu::optimize("no-tree-loop-distribute-patterns")]] inline void paint_stack() {
  auto* const here = static_cast<std::uint32_t*>(__builtin_frame_address(0)) - 32;  // its own frame stays
  for (std::uint32_t* word = &end; word < here; ++word) *word = paint;
}
struct painter {
  painter() { paint_stack(); }
};
inline const painter painted_before_main;
inline void say_stack() {
  const std::uint32_t* lowest = &end;
  while (*lowest == paint) ++lowest;
  board::say("# stack", static_cast<std::uint32_t>(4 * (&stack_top - lowest)));
}
#else
struct instructions {
  void say() const {}
};
inline void say_stack() {}
#endif

}  // namespace board
