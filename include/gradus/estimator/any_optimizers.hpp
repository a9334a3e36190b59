// `any_optimizers` is a type-erased list of a graph's optimizers; a session takes it where their types are not known at
// compile time, as in an estimator.
//
//   gradus::optimizer deep{gradus::adam{.rate = 0.01}}, wide{gradus::ftrl{.rate = 0.2}};
//   gradus::any_optimizers both{deep, wide};
//   gradus::session s{g, both};
#pragma once
#include "../base/build.hpp"

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "../base/contract.hpp"
#include "../run/graph_update.hpp"

namespace gradus::inline GRADUS_BUILD {

class any_optimizers {
public:
  using policy_for = kind::optimizer;

  any_optimizers() = default;
  // Takes any optimizers of graphs (run/optimizer.hpp). Copies of an optimizer share the ops that it has made, so an
  // optimizer may be passed here before its minimize is called.
  template <class... Optimizers>
    requires(sizeof...(Optimizers) != 0 && (detail::is_of<kind::optimizer, Optimizers>() && ...) &&
             (!std::is_same_v<std::remove_cvref_t<Optimizers>, any_optimizers> && ...))
  any_optimizers(const Optimizers&... all) {
    (add(all), ...);
  }

  template <class Optimizer>
    requires(detail::is_of<kind::optimizer, Optimizer>())
  void add(const Optimizer& o) {
    if constexpr (std::is_same_v<Optimizer, any_optimizers>)
      in_cluster_ = in_cluster_ || o.in_cluster_;
    else if constexpr (requires { typename std::bool_constant<Optimizer::in_cluster>; })
      in_cluster_ = in_cluster_ || Optimizer::in_cluster;
    runs_.push_back([o](const graph& g, std::vector<std::unique_ptr<graph_update>>& to) { o.run_in(g, to); });
  }
  std::size_t size() const { return runs_.size(); }
  bool empty() const { return runs_.empty(); }
  // Returns whether one of them is a task's of a cluster (connected).
  bool in_cluster() const { return in_cluster_; }

  // Adds to `to` those train ops of the optimizers that were built in the session's graph.
  void run_in(const graph& g, std::vector<std::unique_ptr<graph_update>>& to) const {
    for (const auto& run : runs_) run(g, to);
  }

private:
  std::vector<std::function<void(const graph&, std::vector<std::unique_ptr<graph_update>>&)>> runs_;
  bool in_cluster_ = false;
};

}  // namespace gradus
