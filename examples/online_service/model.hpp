// The model, as training sees it and as predictions see it: two graphs whose variables have the same names, and copies
// of those variables that a step never changes.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstring>
#include <gradus/cpu/device.hpp>
#include <gradus/ops/elementwise.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/ops/reduce.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/run/session.hpp>
#include <gradus/session/global_step.hpp>
#include <gradus/update/rules/adam.hpp>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace online {

struct sizes {
  int features = 16, hidden = 64;
};

inline gradus::value logits_of(gradus::graph& g, const sizes& s) {
  using namespace gradus;
  const value x = g.placeholder("x", {batch, s.features});
  const value hidden = relu(dense(x, {.units = s.hidden, .name = "hidden"}));
  return dense(hidden, {.units = 1, .name = "logits"});
}

// Steps of training, one caller at a time.
class learner {
public:
  explicit learner(const sizes& s) {
    using namespace gradus;
    const value logits = logits_of(g_, s), truth = g_.placeholder("truth", {batch, 1});
    step_ = create_global_step(g_);
    train_ = opt_.minimize(reduce_mean(sigmoid_cross_entropy_with_logits(logits, truth)), {.global_step = step_});
    session_ = std::make_unique<gradus::session<gradus::default_device, decltype(opt_)>>(g_, opt_);
  }
  void initialize() { session_->initialize(1); }
  void remembers(gradus::state_list& list) { session_->remembers(list); }
  std::int64_t global_step() { return gradus::global_step(*session_, step_); }
  void step(const std::vector<float>& truth, const std::vector<float>& features) {
    session_->run(train_, {{"x", features}, {"truth", truth}});
  }
  gradus::base_session& variables() { return *session_; }

private:
  gradus::graph g_;
  gradus::optimizer<gradus::default_device, gradus::adam> opt_{gradus::adam{.rate = 0.003}};
  gradus::value step_, train_;
  std::unique_ptr<gradus::base_session> session_;
};

// Copies of the variables, of which the newest is shown. Any threads predict from it; one thread shows newer ones, by
// writing a copy that nobody reads. So a prediction never waits for a step, and never sees half of one. There are at
// most two copies more than threads that predicted at once.
class snapshots {
  struct copy {
    explicit copy(const sizes& s) : probability(sigmoid(logits_of(g, s))), runs(g) {
      runs.initialize();
      for (int i = 0; i < g.nodes.count; ++i)
        if (g.nodes[i].op == &gradus::variable_card) names.emplace_back(g.name_of(i));
    }
    gradus::graph g;
    gradus::value probability;
    gradus::session<> runs;
    std::vector<std::string> names;
    std::int64_t step = -1;
    std::atomic<int> readers{0};
  };

public:
  explicit snapshots(const sizes& s) : sizes_(s) {}
  struct answer {
    float probability = 0;
    std::int64_t step = 0;  // of the model that gave it
  };
  answer predict(std::span<const float> features) {
    const reader r(*this);
    const auto result = r.of->runs.run(r.of->probability, {{"x", features}});
    return {result.as<float>()[0], r.of->step};
  }
  // Shows what the learner has now. One thread calls it, before anybody predicts for the first time.
  void show(learner& from, std::int64_t step) {
    copy* spare = nullptr;
    for (auto& c : copies_)
      if (c.get() != shown_ && c->readers.load(std::memory_order_acquire) == 0) spare = c.get();
    if (spare == nullptr) spare = copies_.emplace_back(std::make_unique<copy>(sizes_)).get();
    for (const auto& name : spare->names) {
      const auto to = spare->runs.mutable_variable(name);
      const auto value = from.variables().variable(name);
      std::memcpy(to.mutable_data(), value.data, value.size_bytes());
    }
    spare->step = step;
    const std::lock_guard lock(mutex_);
    shown_ = spare;
  }

private:
  // Holds the copy that is shown, as long as it lives.
  struct reader {
    explicit reader(snapshots& s) {
      const std::lock_guard lock(s.mutex_);
      of = s.shown_;
      of->readers.fetch_add(1, std::memory_order_relaxed);
    }
    reader(const reader&) = delete;
    ~reader() { of->readers.fetch_sub(1, std::memory_order_release); }
    copy* of;
  };

  sizes sizes_;
  std::vector<std::unique_ptr<copy>> copies_;  // of the thread that shows
  std::mutex mutex_;
  copy* shown_ = nullptr;  // written under the mutex, by that thread
};

}  // namespace online
