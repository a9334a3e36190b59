// The bodies of run/, for programs that link gradus::compiled (base/body.hpp).
#ifndef GRADUS_COMPILED
#define GRADUS_COMPILED
#endif
#include "../run/base_session.ipp"
#include "../run/c_header.ipp"
#include "../run/frozen_header.ipp"
#include "../run/constrain.ipp"
#include "../run/freeze.ipp"
#include "../run/machine.ipp"
#include "../run/master_weights.ipp"
#include "../run/microbatch.ipp"
#include "../run/moving_average.ipp"
#include "../run/named_gradient.ipp"
#include "../run/profile.ipp"
#include "../run/run_order.ipp"
#include "../run/run_trace.ipp"
#include "../run/schedule.ipp"
#include "../run/session_core.ipp"
#include "../run/session_resources.ipp"
#include "../run/session_state.ipp"
#include "../run/step_gradients.ipp"
#include "../run/variable_ops.ipp"
#include "../run/variables.ipp"
