// Moved to update/rules/sophia.hpp. The old name is here until 0.7.0.
#pragma once
#include "rules/sophia.hpp"
