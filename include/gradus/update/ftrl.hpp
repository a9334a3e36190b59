// Moved to update/rules/ftrl.hpp. The old name is here until 0.7.0.
#pragma once
#include "rules/ftrl.hpp"
