// Moved to update/rules/momentum.hpp. The old name is here until 0.7.0.
#pragma once
#include "rules/momentum.hpp"
