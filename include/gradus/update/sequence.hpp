// Moved to update/schedules/sequence.hpp. The old name is here until 0.7.0.
#pragma once
#include "schedules/sequence.hpp"
