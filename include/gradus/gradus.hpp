// gradus trains models inside C++ programs. This header suffices for most programs; it includes no xtensor, cereal,
// json, filesystem or regex. The policies that need them have headers of their own, such as codec/cereal.hpp and
// tensor/xtensor.hpp.
#pragma once
#include "base/foreign_macros.hpp"  // first: the standard library does not tolerate a macro min either

#if !defined(__cpp_exceptions)
#error \
    "gradus: gradus/gradus.hpp, with its trainers and datasets, needs exceptions (no -fno-exceptions); without them include gradus/run/session.hpp, gradus/run/updater.hpp, gradus/run/static_step.hpp or gradus/checkpoint/saver.hpp"
#endif

#include "base/clock.hpp"
#include "base/contract.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "base/state.hpp"
#include "base/version.hpp"
#include "checkpoint/saver.hpp"
#include "cpu/device.hpp"
#include "graph/graph.hpp"
#include "input/dataset.hpp"
#include "input/idx.hpp"
#include "ops/clip.hpp"
#include "ops/layer.hpp"
#include "ops/loss.hpp"
#include "ops/model.hpp"
#include "pass/autodiff.hpp"
#include "run/executor.hpp"
#include "run/profile.hpp"
#include "run/session.hpp"
#include "run/stepper.hpp"
#include "run/updater.hpp"
#include "summary/writer.hpp"
#include "tensor/clip.hpp"
#include "train/progress.hpp"
#include "train/run_config.hpp"
#include "train/trainer.hpp"
#include "update/float_constants.hpp"
#include "update/lookahead.hpp"
#include "update/noise.hpp"
#include "update/rules.hpp"
#include "update/schedules.hpp"
#include "update/weight_decay.hpp"
