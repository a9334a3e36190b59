// Moved to update/rules/momentumw.hpp. The old name is here until 0.7.0.
#pragma once
#include "rules/momentumw.hpp"
