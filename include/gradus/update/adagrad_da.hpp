// Moved to update/rules/adagrad_da.hpp. The old name is here until 0.7.0.
#pragma once
#include "rules/adagrad_da.hpp"
