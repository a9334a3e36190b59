// expect: `portable` promises the same bits on every machine
// expect: (x87)
// expect: -mfpmath=sse
// compiled with: -mfpmath=387
// only: g++
#include <gradus/cpu/sweeps.hpp>

int main() {
#ifdef FIX
  [[maybe_unused]] const gradus::sweeps<gradus::fast> arithmetic;
#else
  [[maybe_unused]] const gradus::sweeps<gradus::portable> arithmetic;
#endif
}
