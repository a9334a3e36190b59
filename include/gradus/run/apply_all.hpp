// Moved to run/update_step.hpp. The old name is here until 0.7.0.
#pragma once
#include "update_step.hpp"
