// Moved to update/rules/lars.hpp. The old name is here until 0.7.0.
#pragma once
#include "rules/lars.hpp"
