// Moved to update/rules/add_sign.hpp. The old name is here until 0.7.0.
#pragma once
#include "rules/add_sign.hpp"
