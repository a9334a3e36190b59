// Moved to update/rules/adamax.hpp. The old name is here until 0.7.0.
#pragma once
#include "rules/adamax.hpp"
