// This header includes the estimators, their heads and train_and_evaluate. It is not part of gradus.hpp, so programs
// without estimators do not pay for it.
#pragma once
#include "estimator/binary_class_head.hpp"
#include "estimator/canned/baseline.hpp"
#include "estimator/canned/dnn.hpp"
#include "estimator/canned/dnn_linear_combined.hpp"
#include "estimator/canned/linear.hpp"
#include "estimator/estimator.hpp"
#include "estimator/estimator_input_hook.hpp"
#include "estimator/multi_class_head.hpp"
#include "estimator/regression_head.hpp"
#include "estimator/train_and_evaluate.hpp"
