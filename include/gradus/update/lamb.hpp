// Moved to update/rules/lamb.hpp. The old name is here until 0.7.0.
#pragma once
#include "rules/lamb.hpp"
