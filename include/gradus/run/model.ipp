// The bodies of model.hpp.
#pragma once
#include "../base/body.hpp"
#include "model.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY graph graph_of(const std::function<model_spec(graph&)>& build, mode what, bool keeps_refusal) {
  graph g(what);
  g.keeps_refusal = keeps_refusal;
  build_into(g, [&build](graph& to) { return build(to); });
  return g;
}

GRADUS_BODY planned_graph::planned_graph(graph built, const build_options& o)
    : built_(std::move(built)), ready_(run_passes(built_, o)), program_(plan(parts_of(ready_), o.reuse)) {
  const auto n = static_cast<std::size_t>(program_.signatures.count);
  kernels_.resize(n), details_.resize(n);
  divides_ = std::make_unique<bool[]>(n);
}

GRADUS_BODY planned_graph::~planned_graph() = default;

GRADUS_BODY void planned_graph::bind(std::size_t i, kernel_function run, bool divides, const void* steps) {
  kernels_[i] = run, divides_[i] = divides;
  details_[i] = {&program_.signatures[static_cast<int>(i)], steps};
}

GRADUS_BODY void planned_graph::refuse_step(const card& op, dtype type) {
  raise(status::unimplemented, text(op.name, " is not defined for ", name_of(type)));
}

}  // namespace gradus::detail
