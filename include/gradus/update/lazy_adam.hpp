// Moved to update/rules/lazy_adam.hpp. The old name is here until 0.7.0.
#pragma once
#include "rules/lazy_adam.hpp"
