// Moved to update/rules/adafactor.hpp. The old name is here until 0.7.0.
#pragma once
#include "rules/adafactor.hpp"
