// expect: gradus: this model_fn cannot be called by an estimator; it takes features, and of labels, mode, params and
// at most: 70 lines
#include <gradus/estimator/model_function.hpp>

#ifdef FIX
gradus::estimator_spec model_fn(const gradus::named_tensors&, gradus::mode) { return {}; }
#else
gradus::estimator_spec model_fn(gradus::mode, const gradus::named_tensors&) { return {}; }
#endif

int main() { gradus::make_model_function(model_fn, std::make_shared<const gradus::no_params>()); }
