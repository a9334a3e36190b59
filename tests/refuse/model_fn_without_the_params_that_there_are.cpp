// expect: gradus: this estimator was given params, and its model_fn does not take them; add an argument `const
// at most: 70 lines
#include <gradus/estimator/model_function.hpp>

struct rate {
  double of = 0.1;
};
#ifdef FIX
gradus::estimator_spec model_fn(const gradus::named_tensors&, gradus::mode, const rate&) { return {}; }
#else
gradus::estimator_spec model_fn(const gradus::named_tensors&, gradus::mode) { return {}; }
#endif

int main() { gradus::make_model_function(model_fn, std::make_shared<const rate>()); }
