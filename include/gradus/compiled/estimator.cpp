// The bodies of estimator/, for programs that link gradus::compiled (base/body.hpp).
#ifndef GRADUS_COMPILED
#define GRADUS_COMPILED
#endif
#include "../estimator/binary_class_head.ipp"
#include "../estimator/canned/canned_input.ipp"
#include "../estimator/canned/canned_model.ipp"
#include "../estimator/checkpoint_values.ipp"
#include "../estimator/estimator.ipp"
#include "../estimator/estimator_input.ipp"
#include "../estimator/estimator_spec.ipp"
#include "../estimator/export_output.ipp"
#include "../estimator/head.ipp"
#include "../estimator/model_function.ipp"
#include "../estimator/multi_class_head.ipp"
#include "../estimator/named_tensors.ipp"
#include "../estimator/optimizer_choice.ipp"
#include "../estimator/owned_tensor.ipp"
#include "../estimator/prediction_range.ipp"
#include "../estimator/regression_head.ipp"
