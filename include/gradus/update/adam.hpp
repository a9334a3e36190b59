// Moved to update/rules/adam.hpp. The old name is here until 0.7.0.
#pragma once
#include "rules/adam.hpp"
