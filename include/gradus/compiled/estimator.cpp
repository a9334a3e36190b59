// The bodies of estimator/, for programs that link gradus::compiled (base/body.hpp).
#ifndef GRADUS_COMPILED
#define GRADUS_COMPILED
#endif
#include "../estimator/estimator.ipp"
#include "../estimator/checkpoint_values.ipp"
#include "../estimator/estimator_input.ipp"
#include "../estimator/estimator_spec.ipp"
#include "../estimator/export_output.ipp"
#include "../estimator/model_function.ipp"
#include "../estimator/named_tensors.ipp"
#include "../estimator/owned_tensor.ipp"
#include "../estimator/prediction_range.ipp"
