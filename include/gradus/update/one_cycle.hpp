// Moved to update/schedules/one_cycle.hpp. The old name is here until 0.7.0.
#pragma once
#include "schedules/one_cycle.hpp"
