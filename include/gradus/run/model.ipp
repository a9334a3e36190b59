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

struct planned_graph::parts {
  parts(graph g, const build_options& o)
      : built(std::move(g)), ready(run_passes(built, o)), plan(detail::plan(parts_of(ready), o.reuse)) {
    const auto n = static_cast<std::size_t>(plan.signatures.count);
    kernels.resize(n), details.resize(n);
    divides = owned_array<bool>(n);
  }
  graph built, ready;
  program plan;
  std::vector<kernel_function> kernels;
  std::vector<kernel_details> details;
  owned_array<bool> divides;
};

GRADUS_BODY planned_graph::planned_graph(graph built, const build_options& o)
    : parts_(make_owned<parts>(std::move(built), o)) {}
GRADUS_BODY planned_graph::~planned_graph() = default;

GRADUS_BODY runnable planned_graph::get() const {
  const parts& p = *parts_;
  return {parts_of(p.ready), view_of(p.plan),  p.built.names.chars.first,
          p.kernels.data(),  p.details.data(), p.divides.get()};
}
GRADUS_BODY int planned_graph::signatures() const { return parts_->plan.signatures.count; }
GRADUS_BODY const signature& planned_graph::signature_at(int i) const { return parts_->plan.signatures[i]; }

GRADUS_BODY void planned_graph::bind(int i, kernel_function run, bool divides, const void* steps) {
  const auto at = static_cast<std::size_t>(i);
  parts_->kernels[at] = run, parts_->divides[at] = divides;
  parts_->details[at] = {&parts_->plan.signatures[i], steps};
}

GRADUS_BODY void planned_graph::refuse_step(const card& op, dtype type) {
  raise(status::unimplemented, text(op.name, " is not defined for ", name_of(type)));
}

}  // namespace gradus::detail
