// The bodies of session_creator.hpp.
#pragma once
#include "../base/body.hpp"
#include "session_creator.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
GRADUS_BODY session_manager manager_of(const scaffold& parts, double recovery_wait_secs, const task_system& t) {
  return session_manager({.local_init_op = parts.local_init_op(),
                          .ready_op = parts.ready_op(),
                          .ready_for_local_init_op = parts.ready_for_local_init_op(),
                          .recovery_wait_secs = recovery_wait_secs},
                         t);
}
// Makes a session for the role that the creator has.
GRADUS_BODY session_factory for_role(const session_factory& open, bool is_chief) {
  return session_factory([&open, is_chief] {
    auto s = open();
    s->check_role(is_chief);
    return s;
  });
}
}  // namespace detail

GRADUS_BODY std::unique_ptr<base_session> chief_session_creator::create_session() {
  parts_->finalize(*g_);
  return detail::manager_of(*parts_, o_.recovery_wait_secs, tasks_)
      .prepare_session(detail::for_role(open_, true),
                       {.init_op = parts_->init_op(),
                        .init_feed_dict = parts_->init_feed_dict(),
                        .init_fn = parts_->init_fn(),
                        .from = {.saver = parts_->saver().get(),
                                 .checkpoint_dir = o_.checkpoint_dir,
                                 .checkpoint_filename_with_path = o_.checkpoint_filename_with_path,
                                 .log = o_.log,
                                 .restore_newest = o_.restore_newest,
                                 .restore_fallback = o_.restore_fallback,
                                 .checkpoint_basename = o_.checkpoint_basename}});
}

GRADUS_BODY std::unique_ptr<base_session> worker_session_creator::create_session() {
  parts_->finalize(*g_);
  return detail::manager_of(*parts_, o_.recovery_wait_secs, tasks_)
      .wait_for_session(detail::for_role(open_, false), o_.max_wait_secs, o_.stop.get(),
                        {.init_op = parts_->init_op(), .init_feed_dict = parts_->init_feed_dict()});
}

}  // namespace gradus
