// Moved to update/rules/proximal_gradient_descent.hpp. The old name is here until 0.7.0.
#pragma once
#include "rules/proximal_gradient_descent.hpp"
