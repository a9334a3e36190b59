// Moved to update/rules/adamw.hpp. The old name is here until 0.7.0.
#pragma once
#include "rules/adamw.hpp"
