// The door of the estimator. Not part of gradus.hpp, which costs a program no more for it.
#pragma once
#include "estimator/estimator.hpp"
#include "estimator/train_and_evaluate.hpp"
