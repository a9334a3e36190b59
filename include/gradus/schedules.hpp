// Schedules: every learning-rate schedule, how they are put together, and `vary`, which schedules any other setting.
#pragma once
#include "update/schedule.hpp"
#include "update/schedules.hpp"
#include "update/vary.hpp"
