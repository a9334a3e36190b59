// The bodies of estimator/, for programs that link gradus::compiled (base/body.hpp).
#ifndef GRADUS_COMPILED
#define GRADUS_COMPILED
#endif
#include "../estimator/estimator_spec.ipp"
#include "../estimator/export_output.ipp"
#include "../estimator/named_values.ipp"
