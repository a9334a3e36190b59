// Moved to update/rules/nadam.hpp. The old name is here until 0.7.0.
#pragma once
#include "rules/nadam.hpp"
