// Moved to update/rules/schedule_free.hpp. The old name is here until 0.7.0.
#pragma once
#include "rules/schedule_free.hpp"
