// The bodies of example_spec.hpp.
#pragma once
#include "../base/body.hpp"
#include "example_spec.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY feature default_values::as(feature_kind kind, std::int64_t n, std::string_view name) const {
  feature out = values_;
  out.kind = kind;
  if (kind == feature_kind::float32 && out.floats.empty())
    for (const auto v : std::exchange(out.ints, {})) out.floats.push_back(static_cast<float>(v));
  if (out.floats.size() + out.ints.size() + out.texts.size() != out.size())
    raise(status::invalid_argument, text("feature \"", name, "\": its default is not of its kind, ", name_of(kind)));
  const auto has = static_cast<std::int64_t>(out.size());
  if (has != n && has != 1)
    raise(status::invalid_argument,
          text("feature \"", name, "\": expected a default of 1 or ", n, " values, found ", has));
  if (has == n) return out;
  const std::string first(out.texts.empty() ? std::string_view() : out.texts[0]);
  out.texts.clear();
  if (kind == feature_kind::float32) out.floats.resize(static_cast<std::size_t>(n), out.floats[0]);
  if (kind == feature_kind::int64) out.ints.resize(static_cast<std::size_t>(n), out.ints[0]);
  for (std::int64_t i = 0; kind == feature_kind::text && i < n; ++i) out.texts.push_back(first);
  return out;
}

GRADUS_BODY example_spec::example_spec(const std::vector<example_feature>& list) {
  for (const auto& f : list) {
    for (const auto& e : entries_)
      if (e.name == f.name) raise(status::invalid_argument, text("the feature \"", f.name, "\" is wanted twice"));
    entry e{.name = f.name};
    std::visit([&](const auto& how) { take(e, how); }, f.how);
    entries_.push_back(std::move(e));
  }
}

GRADUS_BODY std::ptrdiff_t example_spec::find(std::string_view key) const {
  if (table_.empty()) return -1;
  for (std::size_t at = crc32c(key) & (table_.size() - 1);; at = (at + 1) & (table_.size() - 1)) {
    const std::ptrdiff_t k = table_[at];
    if (k < 0 || keys_[static_cast<std::size_t>(k)] == key) return k;
  }
}

GRADUS_BODY void example_spec::take(entry& e, const fixed_len_feature& f) {
  e.how = shape_of::fixed, e.kind = f.kind;
  count_values(e, f.dims);
  e.key = want(e.name, e.kind);
  e.may_be_missing = f.default_value.given();
  if (e.may_be_missing) e.default_value = f.default_value.as(e.kind, e.count, e.name);
}

GRADUS_BODY void example_spec::take(entry& e, const var_len_feature& f) {
  e.how = shape_of::var, e.kind = f.kind, e.may_be_missing = true;
  e.key = want(e.name, e.kind);
}

GRADUS_BODY void example_spec::take(entry& e, const sparse_feature& f) {
  e.how = shape_of::sparse, e.kind = f.kind, e.may_be_missing = true, e.width = f.size;
  if (f.size < 1)
    raise(status::invalid_argument, text("feature \"", e.name, "\": expected a size of 1 or more, found ", f.size));
  e.key = want(f.value_key, e.kind);
  e.index_key = want(f.index_key, feature_kind::int64);
}

GRADUS_BODY void example_spec::take(entry& e, const fixed_len_sequence_feature& f) {
  e.how = shape_of::sequence, e.kind = f.kind, e.may_be_missing = f.allow_missing;
  count_values(e, f.dims);
  if (e.count == 0 || e.dims.rank == max_rank)
    raise(status::invalid_argument, text("feature \"", e.name, "\": steps of ", to_text(e.dims), " cannot be counted"));
  e.key = want(e.name, e.kind);
  const default_values zero = e.kind == feature_kind::text ? default_values("") : default_values(0);
  e.default_value = (f.default_value.given() ? f.default_value : zero).as(e.kind, 1, e.name);
}

GRADUS_BODY void example_spec::count_values(entry& e, const extents& dims) {
  e.dims = dims;
  for (int i = 0; i < dims.rank; ++i) {
    if (dims[i] < 0 || __builtin_mul_overflow(e.count, dims[i], &e.count) || e.count > (std::int64_t{1} << 40))
      raise(status::invalid_argument,
            text("feature \"", e.name, "\": expected known extents that fit into memory, found ", to_text(dims)));
  }
}

GRADUS_BODY std::size_t example_spec::want(const std::string& key, feature_kind kind) {
  if (const auto k = find(key); k >= 0) {
    if (kinds_[static_cast<std::size_t>(k)] != kind)
      raise(status::invalid_argument, text("the key \"", key, "\" is wanted both as ",
                                           name_of(kinds_[static_cast<std::size_t>(k)]), " and as ", name_of(kind)));
    return static_cast<std::size_t>(k);
  }
  keys_.push_back(key);
  kinds_.push_back(kind);
  std::size_t size = 4;  // at most half full, so that a search ends
  while (size < 2 * keys_.size()) size *= 2;
  table_.assign(size, -1);
  for (std::size_t k = 0; k < keys_.size(); ++k) {
    std::size_t at = crc32c(keys_[k]) & (size - 1);
    while (table_[at] >= 0) at = (at + 1) & (size - 1);
    table_[at] = static_cast<std::ptrdiff_t>(k);
  }
  return keys_.size() - 1;
}

}  // namespace gradus
