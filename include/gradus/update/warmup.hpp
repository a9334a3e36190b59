// Moved to update/schedules/warmup.hpp. The old name is here until 0.7.0.
#pragma once
#include "schedules/warmup.hpp"
