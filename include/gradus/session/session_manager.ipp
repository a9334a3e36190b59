// The bodies of session_manager.hpp.
#pragma once
#include <cstdio>
#include <optional>
#include <utility>

#include "../base/body.hpp"
#include "../base/pause.hpp"
#include "session_manager.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::unique_ptr<base_session> session_factory::operator()(session_resources& shared) const {
  auto made = make_(&shared);
  if (made == nullptr)
    raise(status::invalid_argument,
          "a session is to use a server's variables, and the function that makes sessions cannot say so: it takes no "
          "session_resources&, or its sessions have a policy shared_resources; give sessions_of(g, policies...)");
  return made;
}

namespace detail {
GRADUS_BODY std::string shown_op(value op) {
  if (!op) return "none";
  const std::string_view name = op.g->name_of(op.id);
  return name.empty() ? text(op.g->nodes[op.id].op->name, " without a name") : text('"', name, '"');
}
GRADUS_BODY bool tells_of_initialization(std::string_view what) {
  return what.find("not initialized") != what.npos || what.find("uninitialized") != what.npos;
}
}  // namespace detail

GRADUS_BODY session_manager::session_manager(session_manager_options o, task_system t)
    : o_(std::move(o)), tasks_(std::move(t)) {
  if (o_.ready_for_local_init_op && !o_.local_init_op)
    raise(status::invalid_argument,
          "session_manager: ready_for_local_init_op is given without a local_init_op, which it would guard; give both, "
          "or leave it out");
}

GRADUS_BODY session_manager::answer session_manager::is_ready(base_session& s, value op) const {
  if (!op) return {};
  try {
    const auto result = s.run(op);
    if (result.type != boolean) return {};
    if (op.g->nodes[op.id].op == &cards::report_uninitialized) {
      const std::vector<std::string> names = uninitialized_names(*op.g, op, result);
      if (names.empty()) return {};
      std::string list;
      for (const std::string& n : names) list += (list.empty() ? "" : ", ") + n;
      return {false, text("Variables not initialized: ", list)};
    }
    for (const bool waits : result.as<bool>())
      if (waits) return {false, text("the ready op ", detail::shown_op(op), " is not ready: it holds a true")};
    return {};
  } catch (const failed_precondition& e) {
    if (!detail::tells_of_initialization(e.what())) throw;
    return {false, e.what()};
  }
}

GRADUS_BODY session_manager::answer session_manager::try_local_init(base_session& s) const {
  if (!o_.local_init_op) return {};
  if (answer ready = is_ready(s, o_.ready_for_local_init_op); !ready.yes) return ready;
  s.run(o_.local_init_op, {}, o_.local_init_run_options);
  return {};
}

GRADUS_BODY bool session_manager::restore(base_session& s, const checkpoint_source& from) const {
  if (!from.checkpoint_dir.empty() && !from.checkpoint_filename_with_path.empty())
    raise(status::invalid_argument,
          text("Can not provide both checkpoint_dir (", from.checkpoint_dir, ") and checkpoint_filename_with_path (",
               from.checkpoint_filename_with_path, "); give one of them"));
  if (from.saver == nullptr || (from.checkpoint_dir.empty() && from.checkpoint_filename_with_path.empty()))
    return false;
  state_list list;
  s.remembers(list);
  const auto restore_newest = [&] {
    const auto still = s.pause_runs();
    const auto found = from.saver->restore_latest(list, from.checkpoint_dir,
                                                  {.fallback = from.restore_fallback,
                                                   .restore_newest = from.restore_newest,
                                                   .prefix = from.checkpoint_basename,
                                                   .may_be_extra = detail::stop_flag_name});
    if (!found) from.saver->refuse_other_names(from.checkpoint_dir, from.checkpoint_basename);
    if (found) detail::pass_warnings(*found, from.log);
    return found.has_value();
  };
  if (!from.checkpoint_filename_with_path.empty()) {
    const auto still = s.pause_runs();  // the runs of other sessions with these variables
    detail::pass_warnings(
        from.saver->restore(list, from.checkpoint_filename_with_path, {.may_be_extra = detail::stop_flag_name}),
        from.log);
    return true;
  }
  for (double waited = 0;; waited += o_.recovery_wait_secs) {
    if (restore_newest()) return true;
    if (!from.wait_for_checkpoint || waited >= from.max_wait_secs) return false;
    if (!detail::pause(tasks_, o_.recovery_wait_secs, from.stop, &s.closing()))
      raise(status::cancelled, text("waiting for a checkpoint in \"", from.checkpoint_dir,
                                    "\" ended: ", s.is_closed() ? s.closing().reason() : from.stop->reason()));
  }
}

GRADUS_BODY std::unique_ptr<base_session> session_manager::prepare_session(const session_factory& open,
                                                                           const prepare_options& o) const {
  std::unique_ptr<base_session> s = open();
  std::optional<base_session::initialization> first_values(*s);
  const bool restored = restore(*s, o.from);
  if (o.restored != nullptr) *o.restored = restored;
  if (!restored) {
    if (!o.init_op && !o.init_fn && !o_.local_init_op)
      raise(status::failed_precondition,
            "Model is not initialized and no init_op or init_fn or local_init_op was given; give one of them, such as "
            "global_variables_initializer(g), or a directory with a checkpoint");
    if (o.init_op) s->run(o.init_op, o.init_feed_dict);
    if (o.init_fn) o.init_fn(*s);
  }
  first_values.reset();
  const auto refuse = [&](std::string_view ready, const std::string& why) {
    raise(status::failed_precondition, text("Init operations did not make model ready", ready, ".  Init op: ",
                                            detail::shown_op(o.init_op), ", init fn: ", o.init_fn ? "given" : "none",
                                            ", local_init_op: ", detail::shown_op(o_.local_init_op), ", error: ", why));
  };
  if (const answer local = try_local_init(*s); !local.yes) refuse(" for local_init", local.why_not);
  if (const answer ready = is_ready(*s, o_.ready_op); !ready.yes) refuse("", ready.why_not);
  return s;
}

GRADUS_BODY recovered_session session_manager::recover_session(const session_factory& open,
                                                               const checkpoint_source& from) const {
  recovered_session r{open(), false, {}};
  const bool restored = restore(*r.session, from);
  const answer local = try_local_init(*r.session);
  if (!restored) {
    r.why_not = "there is no checkpoint to restore";
  } else if (!local.yes) {
    r.why_not = text("the model is not ready for local_init: ", local.why_not);
  } else {
    const answer ready = is_ready(*r.session, o_.ready_op);
    r.initialized = ready.yes, r.why_not = ready.why_not;
  }
  return r;
}

GRADUS_BODY std::unique_ptr<base_session> session_manager::wait_for_session(const session_factory& open,
                                                                            double max_wait_secs, cancellation* stop,
                                                                            const prepare_options& first_values) const {
  const double until = tasks_.elapsed() + max_wait_secs;
  for (bool is_said = false;;) {
    std::unique_ptr<base_session> s = open();
    if (s->is_of_a_task() && first_values.init_op) s->run(first_values.init_op, first_values.init_feed_dict);
    const answer local = try_local_init(*s);
    const answer ready = local.yes ? is_ready(*s, o_.ready_op) : local;
    if (ready.yes) return s;
    if (until - tasks_.elapsed() - o_.recovery_wait_secs < 0)
      raise(status::deadline_exceeded,
            text("Session was not ready after waiting ", max_wait_secs, " secs: ", ready.why_not,
                 ". Start the chief, which initializes the variables, or wait longer (max_wait_secs)"));
    if (!std::exchange(is_said, true))
      std::fprintf(stderr,
                   "gradus: a session waits for the chief to initialize its variables (%s). If the chief is another "
                   "task of a cluster, give the optimizer of this session gradus::connected{server}\n",
                   ready.why_not.c_str());
    if (!detail::pause(tasks_, o_.recovery_wait_secs, stop, &s->closing()) && stop != nullptr && stop->is_cancelled())
      raise(status::cancelled,
            text("Session was not ready: ", ready.why_not, "; waiting for it ended: ", stop->reason()));
    s->close();
  }
}

}  // namespace gradus
