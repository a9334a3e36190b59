// Moved to update/rules/lion.hpp. The old name is here until 0.7.0.
#pragma once
#include "rules/lion.hpp"
