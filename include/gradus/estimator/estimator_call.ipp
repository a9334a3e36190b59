// The bodies of estimator_call.hpp.
#pragma once
#include "../base/body.hpp"
#include "estimator_call.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::shared_ptr<scaffold> parts_of(const estimator_spec& spec) {
  return spec.scaffold != nullptr ? spec.scaffold : std::make_shared<scaffold>();
}

GRADUS_BODY std::unique_ptr<base_session> estimator_creator::create_session() {
  // The hooks have begun, so the op initializes their variables too.
  if (!parts_->init_op())  // finalize looks for one in the collection
    scaffold::get_or_default(*g_, collection::init_op, [this] { return global_variables_initializer(*g_, seed_); });
  parts_->finalize(*g_);
  return session_manager({.local_init_op = parts_->local_init_op(),
                          .ready_op = parts_->ready_op(),
                          .ready_for_local_init_op = parts_->ready_for_local_init_op()},
                         tasks_)
      .prepare_session(open_, {.init_fn = [this](base_session& s) { fill(s); }});
}

GRADUS_BODY void estimator_creator::fill(base_session& s) {
  if (restore_(s)) return;
  s.run(parts_->init_op(), parts_->init_feed_dict());
  if (warm_start_) warm_start_(s);
  if (const auto init = parts_->init_fn()) init(s);
}

}  // namespace gradus::detail
