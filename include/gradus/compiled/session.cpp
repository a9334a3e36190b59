// The bodies of session/, for programs that link gradus::compiled (base/body.hpp).
#ifndef GRADUS_COMPILED
#define GRADUS_COMPILED
#endif
#include "../session/coordinated_thread.ipp"
#include "../session/coordinator.ipp"
#include "../session/global_step.ipp"
#include "../session/input_checkpoint.ipp"
#include "../session/looper.ipp"
#include "../session/master.ipp"
#include "../session/queue/any_queue.ipp"
#include "../session/queue/core.ipp"
#include "../session/queue/element.ipp"
#include "../session/queue/graph_queue.ipp"
#include "../session/queue/spec.ipp"
#include "../session/queue/storage.ipp"
#include "../session/queue_runner.ipp"
#include "../session/scaffold.ipp"
#include "../session/session_creator.ipp"
#include "../session/session_manager.ipp"
