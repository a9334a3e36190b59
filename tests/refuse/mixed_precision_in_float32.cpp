// expect: gradus: mixed_precision computes in bfloat16 or float16
// within: 8 lines
// at most: 20 lines
#include <gradus/pass/mixed_precision.hpp>

int main() {
#ifdef FIX
  gradus::mixed_precision<gradus::float16> p;
#else
  gradus::mixed_precision<gradus::float32> p;
#endif
  (void)p;
}
