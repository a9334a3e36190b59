// Moved to update/schedules/decay.hpp. The old name is here until 0.7.0.
#pragma once
#include "schedules/decay.hpp"
