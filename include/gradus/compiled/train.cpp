// The bodies of train and cluster/, for programs that link gradus::compiled (base/body.hpp).
#ifndef GRADUS_COMPILED
#define GRADUS_COMPILED
#endif
#include "../cluster/accumulator.ipp"
#include "../cluster/server.ipp"
#include "../cluster/spec.ipp"
#include "../train/evaluation.ipp"
#include "../train/hook.ipp"
#include "../train/hooks/logging_tensor_hook.ipp"
#include "../train/hooks/profiler_hook.ipp"
#include "../train/hooks/step_counter_hook.ipp"
#include "../train/hooks/summary_saver_hook.ipp"
#include "../train/loop.ipp"
#include "../train/measure.ipp"
#include "../train/monitored_session.ipp"
#include "../train/monitored_training_session.ipp"
#include "../train/progress.ipp"
#include "../train/run_config.ipp"
#include "../train/step_times.ipp"
#include "../train/supervisor.ipp"
#include "../train/supervisor_options.ipp"
#include "../train/trainer.ipp"
