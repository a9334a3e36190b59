// The bodies of feature_column.hpp.
#pragma once
#include "../base/body.hpp"
#include "feature_column.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::string dense_column::name() const {
  return std::visit([](const auto& c) { return std::string(c.name()); }, what_);
}

GRADUS_BODY std::int64_t dense_column::width() const {
  if (const auto* c = std::get_if<bucketized_column>(&what_)) return c->num_buckets();
  return std::visit(
      [](const auto& c) -> std::int64_t {
        if constexpr (requires { c.width(); })
          return c.width();
        else
          return c.num_buckets();
      },
      what_);
}

GRADUS_BODY const categorical_column* dense_column::categorical() const {
  if (const auto* c = std::get_if<bucketized_column>(&what_)) return c;
  if (const auto* c = std::get_if<indicator_column>(&what_)) return &c->categorical();
  if (const auto* c = embedding()) return &c->categorical();
  return nullptr;
}

GRADUS_BODY void dense_column::read(const features& examples, float* out, std::int64_t stride) const {
  if (numeric() != nullptr) {
    for (std::int64_t r = 0; r < examples.rows(); ++r) numeric()->read(examples, r, out + r * stride);
    return;
  }
  if (embedding() != nullptr)
    raise(status::invalid_argument, text("column \"", name(), "\": its numbers are in a table; give the table"));
  id_lists ids;
  categorical()->ids(examples, ids);
  const std::int64_t n = width();
  for (std::int64_t r = 0; r < ids.rows(); ++r) {
    float* row = out + r * stride;
    std::fill(row, row + n, 0.0f);
    for (std::size_t i = ids.begin(r); i < ids.end(r); ++i)
      if (ids.ids[i] >= 0 && ids.ids[i] < n) row[ids.ids[i]] += ids.weight(i);
  }
}

}  // namespace gradus

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void join_needs(std::vector<feature_need>& into, std::vector<feature_need> more) {
  for (auto& n : more) {
    const auto same = std::find_if(into.begin(), into.end(), [&](const feature_need& o) { return o.key == n.key; });
    if (same == into.end())
      into.push_back(std::move(n));
    else if (same->kind != n.kind || same->ragged != n.ragged || !(same->dims == n.dims))
      raise(status::invalid_argument,
            text("columns want the feature \"", n.key, "\" as ", name_of(same->kind),
                 same->ragged ? ", any number of them" : text(' ', to_text(same->dims)), ", and as ", name_of(n.kind),
                 n.ragged ? ", any number of them" : text(' ', to_text(n.dims)),
                 "; let a map copy the feature under another name for one of them, or, in a cross, take a column of it "
                 "(bucketized_column, categorical_column_with_identity) in place of its name"));
    else
      same->one_default = same->one_default && same_defaults(same->default_value, n.default_value);
  }
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY bool dense_column::same_as(const dense_column& other) const {
  const numeric_column *a = numeric(), *b = other.numeric();
  if (a != nullptr || b != nullptr) return a != nullptr && b != nullptr && a->same_as(*b);
  return &categorical()->rule() == &other.categorical()->rule();
}

GRADUS_BODY feature_columns::feature_columns(std::vector<dense_column> list) : list_(std::move(list)) {
  detail::sort_columns(list_, "feature_columns");
}

GRADUS_BODY std::int64_t feature_columns::width() const {
  std::int64_t n = 0;
  for (const auto& c : list_) n += c.width();
  return n;
}

GRADUS_BODY std::vector<feature_need> feature_columns::needs() const {
  std::vector<feature_need> out;
  for (const auto& c : list_) detail::join_needs(out, c.needs());
  return out;
}

GRADUS_BODY void feature_columns::dense(const features& examples, std::span<float> out,
                                        const table_source& table_of) const {
  const std::int64_t all = width();
  if (static_cast<std::int64_t>(out.size()) != examples.rows() * all)
    raise(status::invalid_argument,
          text("feature_columns: ", examples.rows(), " examples of ", all, " numbers: expected room for ",
               examples.rows() * all, ", found ", out.size()));
  float* at = out.data();
  std::vector<float> embedded;
  for (const auto& c : list_) {
    if (c.embedding() != nullptr && table_of) {
      const auto n = static_cast<std::size_t>(c.width());
      embedded.resize(static_cast<std::size_t>(examples.rows()) * n);
      c.embedding()->look_up(table_of(*c.embedding()), examples, embedded);
      for (std::int64_t r = 0; r < examples.rows(); ++r)
        std::copy_n(embedded.data() + static_cast<std::size_t>(r) * n, n, at + r * all);
    } else {
      c.read(examples, at, all);
    }
    at += c.width();
  }
}

GRADUS_BODY std::vector<float> feature_columns::dense(const features& examples, const table_source& table_of) const {
  std::vector<float> out(static_cast<std::size_t>(examples.rows() * width()));
  dense(examples, out, table_of);
  return out;
}

}  // namespace gradus
