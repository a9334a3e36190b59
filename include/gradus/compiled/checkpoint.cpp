// The bodies of checkpoint/, for programs that link gradus::compiled (base/body.hpp).
#ifndef GRADUS_COMPILED
#define GRADUS_COMPILED
#endif
#include "../checkpoint/caught_signal.ipp"
#include "../checkpoint/delta.ipp"
#include "../checkpoint/folder.ipp"
#include "../checkpoint/match.ipp"
#include "../checkpoint/on_signal.ipp"
#include "../checkpoint/retention.ipp"
#include "../checkpoint/save_when.ipp"
#include "../checkpoint/saver.ipp"
#include "../checkpoint/signal_watch.ipp"
#include "../checkpoint/staging.ipp"
#include "../checkpoint/touched_rows.ipp"
#include "../checkpoint/var_list.ipp"
#include "../checkpoint/vocab.ipp"
#include "../checkpoint/warm_start.ipp"
#include "../checkpoint/warm_start_settings.ipp"
