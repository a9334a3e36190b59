// Schedules: every learning-rate schedule, how they are put together, and `vary`, which schedules any other setting.
#pragma once
#include "update/schedule.hpp"
#include "update/schedules/cosine.hpp"
#include "update/schedules/decay.hpp"
#include "update/schedules/one_cycle.hpp"
#include "update/schedules/plateau.hpp"
#include "update/schedules/sequence.hpp"
#include "update/schedules/warmup.hpp"
#include "update/vary.hpp"
