// The bodies of feature_layers.hpp.
#pragma once
#include <limits>

#include "../base/body.hpp"
#include "feature_layers.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY int graph_extent(std::int64_t n, std::string_view column) {
  if (n > std::numeric_limits<int>::max())
    raise(status::invalid_argument, text("column \"", column, "\": expected at most ", std::numeric_limits<int>::max(),
                                         " buckets in a graph, found ", n));
  return static_cast<int>(n);
}

GRADUS_BODY value fed_by(graph& g, const std::string& name, std::int64_t width, dtype type,
                         const feature_source& source) {
  if (source) {
    const value v = source(name);
    const shape wanted{batch, graph_extent(width, name)};
    if (v.g != &g || v.dims().rank != 2 || v.dims().back() != wanted.back() || v.type() != type)
      raise(status::invalid_argument,
            text("the feature \"", name, "\": expected ", name_of(type), ' ', to_text(wanted), ", found ",
                 v ? text(name_of(v.type()), ' ', to_text(v.dims())) : std::string("no tensor of this graph")));
    return v;
  }
  if (const int id = g.find(name); id >= 0) return {&g, id};
  const value v = g.placeholder(name, {batch, graph_extent(width, name)}, type);
  if (g.name_of(v.id) != name)
    raise(status::failed_precondition, text("the placeholder \"", name, "\" became \"", g.name_of(v.id),
                                            "\", which no layout feeds; call input_layer and linear_model outside of "
                                            "name scopes"));
  return v;
}

GRADUS_BODY fed_ids fed_by(graph& g, const feature_layout& layout, const categorical_column& c,
                           const feature_source& source) {
  const std::int64_t room = layout.room(c);
  const value ids = fed_by(g, text(c.name(), "/ids"), room, int64, source);
  return {ids, c.weighted() ? fed_by(g, text(c.name(), "/weights"), room, float32, source) : value{}};
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY value input_layer(graph& g, const feature_layout& layout, const input_layer_options& o) {
  const auto& columns = layout.input_layer();
  if (columns.empty()) raise(status::invalid_argument, "input_layer: the layout has no columns for it");
  std::vector<value> pieces;
  std::vector<detail::fed_ids> ids;
  for (const auto& c : columns) {
    pieces.push_back(c.embedding() != nullptr ? value{} : detail::fed_by(g, c.name(), c.width(), float32, o.source));
    ids.push_back(c.embedding() != nullptr ? detail::fed_by(g, layout, *c.categorical(), o.source) : detail::fed_ids{});
  }
  const auto scope = g.name_scope(detail::layer_name(o));
  std::vector<std::pair<std::string, value>> tables;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const embedding_column* c = columns[i].embedding();
    if (c == nullptr) continue;
    const auto& how = c->options();
    const auto made =
        std::find_if(tables.begin(), tables.end(), [&](const auto& t) { return t.first == c->table_name(); });
    value table = made != tables.end() ? made->second : value{};
    const shape dims{detail::graph_extent(c->categorical().num_buckets(), c->name()),
                     detail::graph_extent(c->dimension(), c->name())};
    if (table && !(table.dims() == dims))
      raise(status::invalid_argument, text("column \"", c->name(), "\": another column has a table \"", c->table_name(),
                                           "\" of ", to_text(table.dims()), ", expected ", to_text(dims),
                                           "; give one of them another shared_embedding_collection_name"));
    if (!table) {
      const auto inner = g.name_scope(c->table_name());
      table = g.variable("embedding_weights", dims,
                         {.init = how.initializer ? *how.initializer : embedding_start(dims[1]),
                          .trainable = o.trainable && how.trainable});
      tables.emplace_back(c->table_name(), table);
    }
    pieces[i] = embedding_lookup_sparse(
        table, ids[i].ids, {.combiner = how.combiner, .weights = ids[i].weights, .max_norm = how.max_norm});
  }
  return pieces.size() == 1 ? pieces[0] : detail::concat(g, pieces.data(), static_cast<int>(pieces.size()), 1);
}

GRADUS_BODY value linear_model(graph& g, const feature_layout& layout, const linear_model_options& o) {
  const auto& columns = layout.linear_model();
  if (columns.empty()) raise(status::invalid_argument, "linear_model: the layout has no columns for it");
  std::vector<detail::fed_ids> fed;
  for (const auto& c : columns)
    fed.push_back(c.dense() != nullptr
                      ? detail::fed_ids{detail::fed_by(g, c.name(), c.dense()->width(), float32, o.source), {}}
                      : detail::fed_by(g, layout, *c.categorical(), o.source));
  const auto scope = g.name_scope(detail::layer_name(o));
  value total;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto& c = columns[i];
    value part;
    if (c.dense() != nullptr) {
      const auto inner = g.name_scope(c.name());
      part = matmul(fed[i].ids, g.variable("weights", {fed[i].ids.dims().back(), o.units},
                                           {.init = zeros, .trainable = o.trainable}));
    } else {
      part = sparse_linear(fed[i].ids, {.name = c.name(),
                                        .num_buckets = detail::graph_extent(c.categorical()->num_buckets(), c.name()),
                                        .units = o.units,
                                        .combiner = o.sparse_combiner,
                                        .weights = fed[i].weights,
                                        .trainable = o.trainable});
    }
    total = total ? total + part : part;
  }
  return total + g.variable("bias_weights", {o.units}, {.init = zeros, .trainable = o.trainable});
}

}  // namespace gradus
