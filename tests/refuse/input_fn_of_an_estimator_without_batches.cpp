// expect: gradus: this input_fn cannot be called by an estimator; it takes of mode, params and config what it wants, in
// at most: 70 lines
#include <gradus/estimator/estimator_input.hpp>
#include <gradus/input/dataset.hpp>

#include <vector>

const std::vector<float> x(8);

int main() {
#ifdef FIX
  gradus::input_function input([] { return gradus::from_spans("x", x, gradus::extents{}).batch(2); });
#else
  gradus::input_function input([] { return x; });
#endif
}
