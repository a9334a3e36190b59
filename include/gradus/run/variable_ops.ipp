// The bodies of variable_ops.hpp.
#pragma once
#include <bit>

#include "../base/body.hpp"
#include "variable_ops.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// The attributes of an initializer; the variables' nodes follow.
struct initialize_attr {
  int seeded;
  std::array<int, 2> seed;
};
struct count_attr {
  std::array<int, 2> limit;
};

GRADUS_BODY void reads_listed(std::span<const int> attributes, std::vector<int>& reads, std::vector<int>&) {
  reads.insert(reads.end(), attributes.begin(), attributes.end());
}
GRADUS_BODY void infer_truth(inference& r) { r.type = boolean; }
GRADUS_BODY void infer_report(inference& r) { r.type = boolean, r.dims = {r.word_count}; }
GRADUS_BODY void infer_count(inference& r) {
  r.type = r.in_type(0);
  if (r.g.nodes[r.operands[0].id].op != &variable_card) return r.refuse("operand 0 must be a variable");
  if ((r.type != int32 && r.type != int64) || r.in(0).rank != 0)
    return r.refuse("counts a scalar of int32 or int64, not ", r.type, " ", r.in(0));
}

GRADUS_BODY void run_initialize(session_call& c) {
  const auto a = c.get<initialize_attr>();
  const auto seed = std::bit_cast<std::uint64_t>(a.seed);
  c.session.initialize_again(c.attributes.subspan(words_of<initialize_attr>), a.seeded != 0 ? &seed : nullptr, c.feeds);
}
GRADUS_BODY void run_is_initialized(session_call& c) {
  c.result.mutable_as<bool>()[0] = c.session.variable_at(c.attributes[0]).initialized;
}
GRADUS_BODY void run_report(session_call& c) {
  const auto out = c.result.mutable_as<bool>();
  for (std::size_t i = 0; i < c.attributes.size(); ++i) out[i] = !c.session.variable_at(c.attributes[i]).initialized;
}
GRADUS_BODY void run_count_up_to(session_call& c) {
  const auto limit = std::bit_cast<std::int64_t>(c.get<count_attr>().limit);
  const auto count = [&](auto& counter) {
    if (counter >= limit) raise(status::out_of_range, text("Reached limit of ", limit));
    ++counter;
  };
  // operand 0 is the variable's own memory, and so is the result
  if (c.result.type == int32)
    count(c.result.mutable_as<std::int32_t>()[0]);
  else
    count(c.result.mutable_as<std::int64_t>()[0]);
}

GRADUS_BODY value list_op(graph& g, const card& op, std::vector<int> words, std::span<const value> variables) {
  for (const value& v : variables) {
    if (v.g != &g || v.id < 0 || g.nodes[v.id].op != &variable_card)
      raise(status::invalid_argument, text(op.name, ": expected variables of this graph, got ",
                                           v.id < 0 || v.g != &g ? "a value of another" : g.nodes[v.id].op->name));
    words.push_back(v.id);
  }
  return g.add(op, nullptr, 0, words.data(), static_cast<int>(words.size()));
}
GRADUS_BODY std::vector<value> in_collection(graph& g, std::string_view name) {
  std::vector<value> list;
  g.for_each_in(name, [&](value v) { list.push_back(v); });
  return list;
}
}  // namespace detail

GRADUS_BODY value variables_initializer(graph& g, std::span<const value> variables, std::optional<std::uint64_t> seed) {
  const auto words =
      to_words(detail::initialize_attr{seed.has_value(), std::bit_cast<std::array<int, 2>>(seed.value_or(0))});
  return detail::list_op(g, cards::initialize_variables, {words.begin(), words.end()}, variables);
}
GRADUS_BODY value initializer_of(value variable, std::optional<std::uint64_t> seed) {
  const value v = variables_initializer(*variable.g, std::span<const value>(&variable, 1), seed);
  variable.g->nodes[v.id].device = variable.g->nodes[variable.id].device;
  return v;
}
GRADUS_BODY value global_variables_initializer(graph& g, std::optional<std::uint64_t> seed) {
  return variables_initializer(g, detail::in_collection(g, collection::global_variables), seed);
}
GRADUS_BODY value local_variables_initializer(graph& g, std::optional<std::uint64_t> seed) {
  return variables_initializer(g, detail::in_collection(g, collection::local_variables), seed);
}
GRADUS_BODY value tables_initializer(graph& g) {
  const std::vector<value> all = detail::in_collection(g, collection::table_initializers);
  const value v = g.add(no_op_card, nullptr, 0);
  for (const value& w : all) g.depend(v, w);
  return v;
}

GRADUS_BODY value is_variable_initialized(value variable) {
  return detail::list_op(*variable.g, cards::is_variable_initialized, {}, std::span<const value>(&variable, 1));
}
GRADUS_BODY value report_uninitialized_variables(graph& g, std::span<const value> variables) {
  return detail::list_op(g, cards::report_uninitialized, {}, variables);
}
GRADUS_BODY value report_uninitialized_variables(graph& g) {
  auto all = detail::in_collection(g, collection::global_variables);
  for (const value& v : detail::in_collection(g, collection::local_variables)) all.push_back(v);
  return report_uninitialized_variables(g, all);
}
GRADUS_BODY std::vector<std::string> uninitialized_names(const graph& g, value report,
                                                         const const_tensor_view& result) {
  const bool is_one = report.g == &g && report.id >= 0 && g.nodes[report.id].op == &cards::report_uninitialized;
  if (!is_one || result.type != boolean || result.size() != static_cast<std::size_t>(g.nodes[report.id].attrs))
    raise(status::invalid_argument,
          "uninitialized_names: expected a report_uninitialized_variables of this graph and what a run of it gave");
  const int* const ids = g.ints.first + g.nodes[report.id].attr;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < result.size(); ++i)
    if (result.as<bool>()[i]) names.emplace_back(g.name_of(ids[i]));
  return names;
}

GRADUS_BODY value count_up_to(value variable, std::int64_t limit) {
  // The op's result is the variable as it is then.
  return variable.g->add_with(cards::count_up_to, {variable},
                              detail::count_attr{std::bit_cast<std::array<int, 2>>(limit)}) -
         1.0;
}

}  // namespace gradus
