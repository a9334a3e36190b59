// managed_session of a supervisor (train/supervisor.hpp) returns a supervised_session, which makes the steps of a run
// while a block of the program lasts.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../base/error.hpp"
#include "../base/state.hpp"
#include "../base/step_mutex.hpp"
#include "feeding.hpp"
#include "measure.hpp"
#include "run_log.hpp"

namespace gradus::inline GRADUS_BUILD {

struct hooked_session_options;  // hooks of a list that is made when the program runs: run_hooks.hpp

namespace detail {
struct no_data {};

// This interface adds to a supervisor's session what is not its steps or a hook that is a policy.
class beside_steps {
public:
  virtual ~beside_steps() = default;
  virtual void begin() = 0;
  virtual void start(void* steps, const state_list& list, std::int64_t step) = 0;
  virtual void before_run() = 0;
  // Returns true if the run is to end.
  virtual bool after_run(std::int64_t step, double loss, double rate) = 0;
  virtual void end(std::int64_t step) = 0;
};
}  // namespace detail

// This is the scope of a session. Its destructor calls `sv.stop()`, and so may raise; while another error is being
// raised, it stops without saving and that error is passed on.
template <class Supervisor, class Data>
class supervised_session {
  static constexpr bool has_data = !std::is_same_v<Data, detail::no_data>;

public:
  supervised_session(Supervisor& sv, std::string_view master, Data* data,
                     std::unique_ptr<detail::beside_steps> beside = nullptr)
      : sv_(&sv), data_(data) {
    const auto remember_data = [&](state_list& list) {
      if constexpr (has_data) data_->remembers(list);
    };
    sv.open(master, remember_data, std::move(beside));
    if constexpr (has_data) {
      try {
        plan_ = detail::match_feeds<mode::train>(sv.running_->steps, *data);
        sv.loop_.doubt(plan_.doubt);
        if constexpr (Supervisor::composition::in_cluster)
          detail::pass_over(sv.running_->steps, *data, plan_, sv.loop_.restore_input());
      } catch (...) {
        sv.close();
        throw;
      }
    }
  }
  supervised_session(const supervised_session&) = delete;
  ~supervised_session() noexcept(false) {
    const bool unwinding = std::uncaught_exceptions() > entered_;
    const closing_session last{sv_};
    try {
      sv_->stop(unwinding);
    } catch (...) {
      if (!unwinding) throw;
    }
  }

  // Makes one training step on the next batch. Returns false at the end of the data, where it also requests a stop.
  // Raises invalid_argument if the model diverged.
  bool run()
    requires has_data
  {
    return sv_->step([&](auto& steps) { return detail::fill_feeds<mode::train>(steps, *data_, plan_) != 0; });
  }
  // Makes one training step on these arrays, which are named by placeholders. Raises not_found for an unknown
  // placeholder, invalid_argument for a feed that is missing or does not fit, and the errors above.
  void run(std::initializer_list<feed> feeds) {
    sv_->step([&](auto& steps) {
      detail::fill_feeds<mode::train>(steps, sv_->running_->placeholders, {feeds.begin(), feeds.size()});
      return true;
    });
  }

  // ---- safe from any thread
  std::int64_t global_step() const { return sv_->running_->global_step; }
  double loss() const { return sv_->running_->loss; }  // of the last step; NaN before the first
  // Returns the scalars of the last step, as the supervisor writes them by itself; none before the first.
  std::vector<scalar_value> summary() const {
    auto& r = *sv_->running_;
    const detail::step_mutex::visiting lock(r.mutex);
    if (!r.stepped) return {};
    detail::collect_scalars(r.steps, r.loss, sv_->loop_.rate(), r.scalars);
    return r.scalars;
  }
  // Returns all summaries of the last step, for `summary_computed`: the scalars and the rest, as sess.run(merge_all())
  // does.
  summary_values merged_summary() const {
    auto& r = *sv_->running_;
    const detail::step_mutex::visiting lock(r.mutex);
    if (!r.stepped) return {};
    return detail::merged_summary(r.steps, r.loss, sv_->loop_.rate(), r.scalars);
  }
  // Saves a checkpoint now, between two steps. Raises failed_precondition without a logdir or with saver = none.
  void save() {
    auto& r = *sv_->running_;
    const detail::step_mutex::visiting lock(r.mutex);
    if (!sv_->loop_.saves())
      raise(status::failed_precondition, "save: the supervisor has no logdir, or its saver is none");
    sv_->loop_.save();
  }

  // ---- on the thread that trains
  auto& steps() { return sv_->running_->steps; }

private:
  struct closing_session {
    Supervisor* sv;
    ~closing_session() { sv->close(); }
  };
  Supervisor* sv_;
  Data* data_;
  detail::feed_plan plan_;
  int entered_ = std::uncaught_exceptions();
};

namespace detail {
template <class Data>
struct kept_data {
  Data data;
};
}  // namespace detail

// This is a supervised_session that owns its dataset.
template <class Supervisor, class Data>
class supervised_session_with_data : detail::kept_data<Data>, public supervised_session<Supervisor, Data> {
public:
  supervised_session_with_data(Supervisor& sv, std::string_view master, Data kept,
                               std::unique_ptr<detail::beside_steps> beside = nullptr)
      : detail::kept_data<Data>{std::move(kept)},
        supervised_session<Supervisor, Data>(sv, master, &this->data, std::move(beside)) {}
};

}  // namespace gradus
