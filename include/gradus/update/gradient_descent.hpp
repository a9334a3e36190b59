// Moved to update/rules/gradient_descent.hpp. The old name is here until 0.7.0.
#pragma once
#include "rules/gradient_descent.hpp"
