// This header has every optimizer, and the policies that compose with one: chain and multi, masks and freeze, clips,
// accumulation, noise, averages, weight decay, loss scales, lookahead. (gradus.hpp includes the rules too.)
#pragma once
#include "base/foreign_macros.hpp"  // first: the standard library does not tolerate a macro min either

#include "update/accumulate.hpp"
#include "update/average.hpp"
#include "update/chain.hpp"
#include "update/clip.hpp"
#include "update/float_constants.hpp"
#include "update/freeze.hpp"
#include "update/lookahead.hpp"
#include "update/loss_scale.hpp"
#include "update/mask.hpp"
#include "update/multi.hpp"
#include "update/noise.hpp"
#include "update/not_finite.hpp"
#include "update/rules.hpp"
#include "update/vary.hpp"
#include "update/weight_decay.hpp"
