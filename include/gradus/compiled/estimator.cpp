// The bodies of estimator/, for programs that link gradus::compiled (base/body.hpp).
#ifndef GRADUS_COMPILED
#define GRADUS_COMPILED
#endif
#include "../estimator/checkpoint_values.ipp"
#include "../estimator/estimator.ipp"
#include "../estimator/estimator_input.ipp"
#include "../estimator/estimator_spec.ipp"
#include "../estimator/evaluation_result.ipp"
#include "../estimator/export_output.ipp"
#include "../estimator/exporter.ipp"
#include "../estimator/model_function.ipp"
#include "../estimator/named_tensors.ipp"
#include "../estimator/owned_tensor.ipp"
#include "../estimator/prediction_range.ipp"
#include "../estimator/serving_input.ipp"
#include "../estimator/train_and_evaluate.ipp"
#include "../estimator/train_spec.ipp"
