// What a drawn program includes.
#pragma once
#include <gradus/checkpoint/background.hpp>
#include <gradus/cluster/all_reduce.hpp>
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/local_cluster.hpp>
#include <gradus/cluster/simulated.hpp>
#include <gradus/codecs.hpp>
#include <gradus/data.hpp>
#include <gradus/estimator.hpp>
#include <gradus/estimator/compiled_estimator.hpp>
#include <gradus/gradus.hpp>
#include <gradus/pass/mixed_precision.hpp>
#include <gradus/pass/recompute.hpp>
#include <gradus/rules.hpp>
#include <gradus/run/microbatch.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/run/slot_storage.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/schedules.hpp>
#include <gradus/session/global_step.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/activations.hpp>
#include <gradus/train/supervisor.hpp>
#include <gradus/train/validation.hpp>
#include <gradus/update/matching.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "../train/run_files.hpp"
