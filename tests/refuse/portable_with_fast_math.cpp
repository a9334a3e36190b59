// expect: `portable` promises the same bits on every machine
// expect: -ffast-math
// expect: or use `fast`
// compiled with: -ffast-math
#include <gradus/cpu/sweeps.hpp>

int main() {
#ifdef FIX
  [[maybe_unused]] const gradus::sweeps<gradus::fast> arithmetic;
#else
  [[maybe_unused]] const gradus::sweeps<gradus::portable> arithmetic;
#endif
}
