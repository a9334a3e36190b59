// The bodies of embedding_column.hpp.
#pragma once
#include "../base/body.hpp"
#include "embedding_column.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY embedding_table::embedding_table(std::span<const float> whole, std::int64_t rows, std::int64_t dimension)
    : embedding_table(std::vector<std::span<const float>>{whole}, rows, dimension) {}

GRADUS_BODY embedding_table::embedding_table(std::vector<std::span<const float>> parts, std::int64_t rows,
                                             std::int64_t dimension)
    : parts_(std::move(parts)), rows_(rows), dimension_(dimension) {
  const auto n = static_cast<std::int64_t>(parts_.size());
  for (std::int64_t k = 0; k < n; ++k) {
    const std::int64_t wanted = (rows / n + (k < rows % n ? 1 : 0)) * dimension,
                       found = static_cast<std::int64_t>(parts_[static_cast<std::size_t>(k)].size());
    if (found != wanted)
      raise(status::invalid_argument, text("embedding table [", rows, ", ", dimension, "], part ", k, " of ", n,
                                           ": expected ", wanted, " numbers, found ", found));
  }
  if (n == 0) raise(status::invalid_argument, "embedding table: expected a part, found none");
}

GRADUS_BODY const float* embedding_table::operator[](std::int64_t id) const {
  const row_block b = block_of(id, rows_, parts_.size());
  return parts_[b.part].data() + b.row * dimension_;
}

GRADUS_BODY void look_up_embeddings(const embedding_table& table, const id_lists& ids, combiner how, double max_norm,
                                    std::span<float> out) {
  const auto dim = static_cast<std::size_t>(table.dimension());
  if (out.size() != static_cast<std::size_t>(ids.rows()) * dim)
    raise(status::invalid_argument,
          text("look-up of ", ids.rows(), " examples in rows of ", dim, ": expected room for ",
               ids.rows() * table.dimension(), " numbers, found ", out.size()));
  std::fill(out.begin(), out.end(), 0.0f);
  for (std::int64_t r = 0; r < ids.rows(); ++r) {
    float* const to = out.data() + static_cast<std::size_t>(r) * dim;
    float total = 0;
    for (std::size_t i = ids.begin(r); i < ids.end(r); ++i) {
      const std::int64_t id = ids.ids[i];
      const float w = ids.weight(i);
      if (id < 0 || (how != combiner::sum && !(w > 0))) continue;
      if (id >= table.rows())
        raise(status::invalid_argument,
              text("look-up: example ", r, " of the batch has id ", id, ", but the table has ", table.rows(), " rows"));
      const float* const row = table[id];
      float factor = w;
      if (max_norm > 0) {
        double squares = 0;
        for (std::size_t k = 0; k < dim; ++k) squares += static_cast<double>(row[k]) * static_cast<double>(row[k]);
        factor = static_cast<float>(static_cast<double>(w) * max_norm / std::max(std::sqrt(squares), max_norm));
      }
      for (std::size_t k = 0; k < dim; ++k) to[k] += factor * row[k];
      total += how == combiner::sqrtn ? w * w : w;
    }
    if (how == combiner::sum || total == 0) continue;
    const float by = how == combiner::mean ? total : std::sqrt(total);
    for (std::size_t k = 0; k < dim; ++k) to[k] /= by;
  }
}

GRADUS_BODY embedding_column::embedding_column(categorical_column column, std::int64_t dimension,
                                               embedding_column_options o)
    : embedding_column("_embedding", "", std::move(column), dimension, std::move(o)) {}

GRADUS_BODY void embedding_column::look_up(const embedding_table& table, const features& examples,
                                           std::span<float> out) const {
  if (table.rows() != column_.num_buckets() || table.dimension() != dimension_)
    raise(status::invalid_argument, text("column \"", name_, "\": expected a table [", column_.num_buckets(), ", ",
                                         dimension_, "], found [", table.rows(), ", ", table.dimension(), "]"));
  look_up_embeddings(table, column_.ids(examples), o_.combiner, o_.max_norm, out);
}

GRADUS_BODY void embedding_column::look_up(std::span<const float> table, const features& examples,
                                           std::span<float> out) const {
  look_up(embedding_table(table, column_.num_buckets(), dimension_), examples, out);
}

GRADUS_BODY embedding_column::embedding_column(std::string_view suffix, std::string table, categorical_column column,
                                               std::int64_t dimension, embedding_column_options o)
    : name_(text(column.name(), suffix)),
      table_(table.empty() ? name_ : std::move(table)),
      column_(std::move(column)),
      dimension_(dimension),
      o_(std::move(o)) {
  const auto refuse = [this](const auto&... pieces) {
    raise(status::invalid_argument, text("embedding_column \"", name_, "\": ", pieces...));
  };
  if (dimension < 1) refuse("expected a dimension of at least 1, found ", dimension);
  if (o_.ckpt_to_load_from.empty() != o_.tensor_name_in_ckpt.empty())
    refuse("expected both or none of ckpt_to_load_from and tensor_name_in_ckpt, found \"", o_.ckpt_to_load_from,
           "\" and \"", o_.tensor_name_in_ckpt, '"');
  if (!(o_.max_norm >= 0)) refuse("expected a max_norm above 0, or 0 for none, found ", o_.max_norm);
  if (o_.initializer)
    if (const char* problem = detail::initializer_problem(*o_.initializer, shape{1, 1}))
      refuse("its initializer cannot be: ", problem);
}

GRADUS_BODY std::vector<embedding_column> shared_embedding_columns(const std::vector<categorical_column>& columns,
                                                                   std::int64_t dimension,
                                                                   const embedding_column_options& o,
                                                                   std::string shared_embedding_collection_name) {
  if (columns.empty()) raise(status::invalid_argument, "shared_embedding_columns: expected columns, found none");
  std::vector<std::string> names;
  for (const auto& c : columns) {
    names.push_back(c.name());
    if (c.num_buckets() != columns[0].num_buckets())
      raise(status::invalid_argument,
            text("shared_embedding_columns: expected columns of as many buckets, found ", columns[0].num_buckets(),
                 " of \"", names[0], "\" and ", c.num_buckets(), " of \"", names.back(), '"'));
  }
  std::string& table = shared_embedding_collection_name;
  std::sort(names.begin(), names.end());
  if (table.empty()) {
    for (const auto& n : names) table += n + "_";
    table += "shared_embedding";
  }
  std::vector<embedding_column> out;
  for (const auto& c : columns) out.push_back(embedding_column("_shared_embedding", table, c, dimension, o));
  return out;
}

}  // namespace gradus
