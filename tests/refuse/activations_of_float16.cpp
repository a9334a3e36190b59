// expect: gradus: activations are stored as float32, or with activations<bfloat16>{}
// within: 8 lines
// at most: 40 lines
#include <gradus/train/activations.hpp>

int main() {
#ifdef FIX
  gradus::activations<gradus::bfloat16> policy;
#else
  gradus::activations<gradus::float16> policy;
#endif
  (void)policy;
}
