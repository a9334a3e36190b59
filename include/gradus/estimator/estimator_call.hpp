// One call of an estimator (train, evaluate, predict, export) has a graph of its own; this header has what lives as
// long as that graph, and how its session is made.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "../session/session_creator.hpp"
#include "estimator_input.hpp"
#include "estimator_spec.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// One graph of a call, and the objects that live as long.
struct estimator_call {
  std::unique_ptr<graph> g;
  std::shared_ptr<running_input> input;
  estimator_spec spec;
  value step;
  std::shared_ptr<scaffold> parts;
};

// Returns the scaffold of the spec; a new one if it has none.
std::shared_ptr<scaffold> parts_of(const estimator_spec& spec);

// Makes the sessions of an estimator's graph: variables come from a checkpoint, else from their initializers, a warm
// start, and the scaffold's init_fn, in this order.
class estimator_creator final : public session_creator {
public:
  using maker = std::function<std::unique_ptr<base_session>()>;
  using filler = std::function<bool(base_session&)>;  // returns false if there is no checkpoint

  estimator_creator(maker open, graph& g, std::uint64_t seed, std::shared_ptr<scaffold> parts, filler restore,
                    std::function<void(base_session&)> warm_start, task_system t)
      : open_(std::move(open)),
        g_(&g),
        seed_(seed),
        parts_(std::move(parts)),
        restore_(std::move(restore)),
        warm_start_(std::move(warm_start)),
        tasks_(std::move(t)) {}
  std::unique_ptr<base_session> create_session() override;
  graph* of() const override { return g_; }

private:
  maker open_;
  graph* g_;
  std::uint64_t seed_;
  std::shared_ptr<scaffold> parts_;
  filler restore_;
  std::function<void(base_session&)> warm_start_;
  task_system tasks_;

  void fill(base_session& s);
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "estimator_call.ipp"
#endif
