// This header has the sources in memory and the stages of a pipeline; the file formats have headers of their own.
//
//   auto input = from_spans("x", x, extents{784}, "y", y).shuffle(1000, 7).repeat().batch(32).prefetch(2);
//   state_list list;
//   input.remembers(list);      // the position is state like any other
//   while (auto n = input.next(views)) ...
//
// stage.hpp defines a dataset.
#pragma once
#include "batch.hpp"
#include "memory.hpp"
#include "position.hpp"
#include "prefetch.hpp"
#include "repeat.hpp"
#include "shard.hpp"
#include "shuffle.hpp"
#include "stage.hpp"
