// Moved to update/schedules/plateau.hpp. The old name is here until 0.7.0.
#pragma once
#include "schedules/plateau.hpp"
