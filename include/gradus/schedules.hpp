// This header has every learning-rate schedule, the ways to combine them, and `vary`, which schedules any other
// setting.
#pragma once
#include "base/foreign_macros.hpp"  // first: the standard library does not stand a macro min either

#include "update/schedule.hpp"
#include "update/schedules.hpp"
#include "update/vary.hpp"
