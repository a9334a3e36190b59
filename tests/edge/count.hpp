// Instructions of a piece of a program on an emulated board whose clock is its instructions (qemu -icount shift=0): one
// is a nanosecond, and a tick of the processor's timer, at 25 MHz, is forty of them. Said on a line that begins with #,
// which is not compared with what other machines say, and is not said where there is no such clock.
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
#else
struct instructions {
  void say() const {}
};
#endif

}  // namespace board
