// Moved to update/rules/rmsprop.hpp. The old name is here until 0.7.0.
#pragma once
#include "rules/rmsprop.hpp"
