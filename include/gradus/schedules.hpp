// Schedules: every learning-rate schedule, how they are put together, and `vary`, which schedules any other setting.
#pragma once
#include "update/cosine.hpp"
#include "update/decay.hpp"
#include "update/one_cycle.hpp"
#include "update/plateau.hpp"
#include "update/schedule.hpp"
#include "update/sequence.hpp"
#include "update/vary.hpp"
#include "update/warmup.hpp"
