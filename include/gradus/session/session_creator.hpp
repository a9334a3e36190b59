// A session creator makes the sessions of a monitored session: the first, and those after a peer has died. The classes
// are tf.train.SessionCreator, ChiefSessionCreator and WorkerSessionCreator (1.15).
//
//   gradus::chief_session_creator chief(gradus::sessions_of(g), parts, {.checkpoint_dir = "runs/digits"});
//   auto sess = chief.create_session();
#pragma once
#include "../base/build.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "scaffold.hpp"
#include "session_manager.hpp"

namespace gradus::inline GRADUS_BUILD {

class session_creator {
public:
  virtual ~session_creator() = default;
  virtual std::unique_ptr<base_session> create_session() = 0;
  // Returns the graph of its sessions, or null if the graph is unknown before the first session.
  virtual graph* of() const { return nullptr; }
};

struct chief_session_options {
  std::string checkpoint_dir = {};  // at most one of the two paths
  std::string checkpoint_filename_with_path = {};
  double recovery_wait_secs = 30;
  std::function<void(std::string_view line)> log = nullptr;  // gets the warnings of a restore; default: stderr
  bool restore_newest = false, restore_fallback = false;     // as in checkpoint_source
  std::string checkpoint_basename = "model";                 // of the checkpoints in checkpoint_dir
};
// Makes sessions that restore the variables, or else initialize them. The first session finalizes the scaffold, which
// must outlive the creator.
class chief_session_creator final : public session_creator {
public:
  chief_session_creator(session_factory open, graph& g, scaffold& parts, chief_session_options o = {},
                        task_system t = {})
      : open_(std::move(open)), g_(&g), parts_(&parts), o_(std::move(o)), tasks_(std::move(t)) {}
  // Raises the errors of session_manager::prepare_session.
  std::unique_ptr<base_session> create_session() override;
  graph* of() const override { return g_; }

private:
  session_factory open_;
  graph* g_;
  scaffold* parts_;
  chief_session_options o_;
  task_system tasks_;
};

struct worker_session_options {
  double max_wait_secs = 1800;
  double recovery_wait_secs = 30;
  std::shared_ptr<cancellation> stop = nullptr;  // ends the wait: a coordinator's stopping()
};
// Makes sessions that wait until another session has initialized the variables.
class worker_session_creator final : public session_creator {
public:
  worker_session_creator(session_factory open, graph& g, scaffold& parts, worker_session_options o = {},
                         task_system t = {})
      : open_(std::move(open)), g_(&g), parts_(&parts), o_(std::move(o)), tasks_(std::move(t)) {}
  // Raises deadline_exceeded after max_wait_secs; cancelled if `stop` ends the wait.
  std::unique_ptr<base_session> create_session() override;
  graph* of() const override { return g_; }

private:
  session_factory open_;
  graph* g_;
  scaffold* parts_;
  worker_session_options o_;
  task_system tasks_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "session_creator.ipp"
#endif
