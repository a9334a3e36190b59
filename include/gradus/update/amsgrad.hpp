// Moved to update/rules/amsgrad.hpp. The old name is here until 0.7.0.
#pragma once
#include "rules/amsgrad.hpp"
