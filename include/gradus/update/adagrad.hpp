// Moved to update/rules/adagrad.hpp. The old name is here until 0.7.0.
#pragma once
#include "rules/adagrad.hpp"
