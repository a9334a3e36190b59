// Moved to update/rules/proximal_adagrad.hpp. The old name is here until 0.7.0.
#pragma once
#include "rules/proximal_adagrad.hpp"
