// Moved to update/schedules/cosine.hpp. The old name is here until 0.7.0.
#pragma once
#include "schedules/cosine.hpp"
