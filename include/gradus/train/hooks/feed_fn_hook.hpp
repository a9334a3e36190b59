// This hook feeds the result of a function in every run. It corresponds to tf.train.FeedFnHook (1.15).
#pragma once
#include "../../base/build.hpp"

#include <functional>
#include <utility>
#include <vector>

#include "../any_hook.hpp"

namespace gradus::inline GRADUS_BUILD {

class feed_fn_hook {
public:
  // The memory that the feeds refer to must stay valid until the run has ended.
  explicit feed_fn_hook(std::function<std::vector<feed>()> feed_fn) : feed_fn_(std::move(feed_fn)) {}
  session_run_args before_run(run_context&) const { return {.feeds = feed_fn_()}; }

private:
  std::function<std::vector<feed>()> feed_fn_;
};

}  // namespace gradus
