// The bodies of microbatch.hpp.
#pragma once
#include "../base/body.hpp"
#include "../pass/cut.hpp"
#include "microbatch.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void microbatch::check() const {
  if (parts < 1) raise(status::invalid_argument, text("microbatch: expected parts >= 1, found ", parts));
}

GRADUS_BODY void microbatch::check_shared(std::int64_t processes) const {
  if (sum == summation::in_order && processes > 1)
    raise(status::invalid_argument,
          text("microbatch: a sum in order cannot be shared by ", processes, " processes; expected microbatch{", parts,
               "}, whose sum is a tree, or one process"));
}

}  // namespace gradus

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::span<double> part_sums::outputs() { return {outputs_.data(), outputs_.size()}; }

GRADUS_BODY void part_sums::prepare(step_machine& train, const variable_arena& variables, const microbatch& cut) {
  cut_ = cut;
  const runnable& r = train.what();
  const graph_view& v = r.graph.view;
  if (const uncut u = find_uncut(v); u.why != uncut::none) {
    const node& n = v.nodes[u.node];
    if (u.why == uncut::rows)
      raise(status::unimplemented,
            text("microbatch: the gradient of \"", r.name_of(v.edges[n.first]),
                 "\" comes as rows, whose sum is no array; use accumulate{}, or a smaller batch"));
    raise(status::unimplemented,
          text("microbatch: the model changes \"", r.name_of(v.edges[n.first]), "\" while it computes (", n.op->name,
               "), and every part would do it again; leave microbatch out, or what changes it (a batch_norm: use "
               "layer_norm)"));
  }
  for (int i = 0; i < v.size && cut_.parts > 1; ++i)
    if (const node& n = v.nodes[i]; n.op == &placeholder_card && is_batched(n.dims) && before_batch(n.dims) != 1)
      raise(status::invalid_argument, text("microbatch: the batch of the placeholder \"", r.name_of(i),
                                           "\" is not its first extent: ", to_text(n.dims),
                                           "; make it the first one, and transpose in the model"));
  train.cut(cut_.parts);
  sums_ = tree_sum(cut_.parts, variables.trainable_bytes(), cut_.sum);
  prepare_outputs(train);
}

GRADUS_BODY void part_sums::prepare_outputs(step_machine& train) {
  const runnable& r = train.what();
  averaged_.clear();
  for (int i = 0; i < r.graph.output_count; ++i) {
    const output& o = r.graph.outputs[i];
    const node& n = r.at(o.node);
    const bool number = (n.type == float32 || n.type == float64) && gradus::count(n.dims) == 1;
    const bool mean = o.kind == output::loss || o.kind == output::metric || o.kind == output::summary;
    if (mean && number && !is_of_leaf(r.graph.view, o.node) && r.program.places[o.node].region == node_place::slot &&
        std::find(averaged_.begin(), averaged_.end(), o.node) == averaged_.end())
      averaged_.push_back(o.node);
  }
  outputs_.resize(averaged_.size());
  output_sums_ = tree_sum(cut_.parts, outputs_.size() * sizeof(double), cut_.sum);
}

GRADUS_BODY void part_sums::take(step_machine& train, variable_arena& variables) {
  sums_.take(variables.gradient_base(),
             [&](std::byte* to, const std::byte* from) { add_gradients(variables, to, from); });
  take_outputs(train);
  output_sums_.take(reinterpret_cast<std::byte*>(outputs_.data()), [this](std::byte* to, const std::byte* from) {
    add_values(reinterpret_cast<double*>(to), reinterpret_cast<const double*>(from), outputs_.size());
  });
}

GRADUS_BODY void part_sums::average(step_machine& train, variable_arena& variables, std::int64_t of) {
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (const variable_info& v = variables.info(i); v.trainable && is_float(v.type))
      divide_gradient(v.type, variables.gradient(i), v.size(), of);
  }
  average_outputs(train);
}

GRADUS_BODY void part_sums::divide_gradient(dtype type, std::byte* values, std::size_t n, std::int64_t of) {
  if (type == float64)
    divide_values(reinterpret_cast<double*>(values), of, n);
  else
    divide_values(reinterpret_cast<float*>(values), of, n);
}

GRADUS_BODY void part_sums::take_outputs(step_machine& train) {
  for (std::size_t i = 0; i < averaged_.size(); ++i) outputs_[i] = read_number(train.view(averaged_[i]));
}

GRADUS_BODY void part_sums::average_outputs(step_machine& train, std::int64_t of) {
  for (std::size_t i = 0; i < averaged_.size(); ++i) {
    const tensor_view v = train.view(averaged_[i]);
    const double mean = outputs_[i] / static_cast<double>(of);
    if (v.type == float64)
      *reinterpret_cast<double*>(v.mutable_data()) = mean;
    else
      *reinterpret_cast<float*>(v.mutable_data()) = static_cast<float>(mean);
  }
}

GRADUS_BODY void part_sums::add_gradients(const variable_arena& variables, std::byte* to, const std::byte* from) {
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const variable_info& v = variables.info(i);
    if (!v.trainable || !is_float(v.type)) continue;  // others have no gradient
    std::byte* const sum = to + v.offset;
    if (v.type == float64)
      add_values(reinterpret_cast<double*>(sum), reinterpret_cast<const double*>(from + v.offset), v.size());
    else
      add_values(reinterpret_cast<float*>(sum), reinterpret_cast<const float*>(from + v.offset), v.size());
  }
}

}  // namespace gradus::detail
