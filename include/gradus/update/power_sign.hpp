// Moved to update/rules/power_sign.hpp. The old name is here until 0.7.0.
#pragma once
#include "rules/power_sign.hpp"
