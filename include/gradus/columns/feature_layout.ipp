// The bodies of feature_layout.hpp.
#pragma once
#include "../base/body.hpp"
#include "feature_layout.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::string linear_column::name() const {
  return std::visit([](const auto& c) { return c.name(); }, what_);
}

}  // namespace gradus

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY feature feature_of(const component& c, const_tensor_view v, const feature_need& need) {
  const auto refuse = [&](std::string_view expected) {
    raise(status::invalid_argument, text("feature \"", need.key, "\": expected ", expected, " in a batch, found ",
                                         name_of(c.type), ' ', to_text(c.dims)));
  };
  if (c.dims.rank == 0) refuse("rows");
  feature f{.name = need.key};
  const std::int64_t rows = c.dims[0];
  std::int64_t each = 1;
  const bool is_text = c.type == dtype::uint8 && need.kind == feature_kind::text;
  for (int i = 1; i < c.dims.rank - (is_text ? 1 : 0); ++i) each *= c.dims[i];
  f.dims = {each};
  const auto numbers = [&]<class T>(std::span<const T> from) {
    if (need.kind == feature_kind::float32)
      for (const T x : from) f.floats.push_back(static_cast<float>(x));
    else if constexpr (std::is_floating_point_v<T>)
      refuse(need.kind == feature_kind::text ? "uint8 text" : "whole numbers");
    else
      for (const T x : from) f.ints.push_back(static_cast<std::int64_t>(x));
    f.kind = need.kind == feature_kind::float32 ? feature_kind::float32 : feature_kind::int64;
  };
  if (is_text) {
    if (c.dims.rank < 2) refuse("uint8 text, [rows, bytes]");
    f.kind = feature_kind::text;
    const auto bytes = static_cast<std::size_t>(c.dims[c.dims.rank - 1]);
    const char* at = reinterpret_cast<const char*>(v.data);
    for (std::int64_t i = 0; i < rows * each; ++i, at += bytes) {
      std::size_t n = bytes;
      while (n > 0 && at[n - 1] == '\0') --n;
      f.texts.push_back({at, n});
    }
    return f;
  }
  switch (c.type) {
  case dtype::float32: numbers(v.as<float>()); break;
  case dtype::float64: numbers(v.as<double>()); break;
  case dtype::int32: numbers(v.as<std::int32_t>()); break;
  case dtype::int64: numbers(v.as<std::int64_t>()); break;
  case dtype::uint8: numbers(v.as<std::uint8_t>()); break;
  default: refuse("numbers or uint8 text");
  }
  return f;
}

GRADUS_BODY feature_kind kept_kind(const component& c) {
  if (c.type == dtype::float32) return feature_kind::float32;
  if (c.type == dtype::int32 || c.type == dtype::int64) return feature_kind::int64;
  raise(status::invalid_argument, text("feature_layout keeps \"", c.name, "\" as ", name_of(c.type),
                                       "; of features it can keep float32, int32 and int64"));
}

GRADUS_BODY void keep_feature(const feature& f, const component& c, tensor_view to) {
  if (f.ragged() || f.kind != kept_kind(c) || f.size() != to.size())
    raise(status::invalid_argument, text("feature_layout keeps \"", c.name, "\" as ", name_of(c.type), ' ',
                                         to_text(c.dims), " of each example, found a feature of ", name_of(f.kind),
                                         ", ", f.ragged() ? "any number of them" : to_text(f.dims)));
  if (c.type == dtype::float32) std::copy(f.floats.begin(), f.floats.end(), to.mutable_as<float>().begin());
  if (c.type == dtype::int64) std::copy(f.ints.begin(), f.ints.end(), to.mutable_as<std::int64_t>().begin());
  if (c.type == dtype::int32) {
    for (const std::int64_t v : f.ints)
      if (v != static_cast<std::int32_t>(v))
        raise(status::invalid_argument,
              text("feature_layout keeps \"", c.name, "\" as int32, found ", v, "; keep it as int64"));
    std::transform(f.ints.begin(), f.ints.end(), to.mutable_as<std::int32_t>().begin(),
                   [](std::int64_t v) { return static_cast<std::int32_t>(v); });
  }
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY feature_layout::feature_layout(const feature_layout&) = default;
GRADUS_BODY feature_layout::feature_layout(feature_layout&&) noexcept = default;
GRADUS_BODY feature_layout& feature_layout::operator=(const feature_layout&) = default;
GRADUS_BODY feature_layout& feature_layout::operator=(feature_layout&&) noexcept = default;
GRADUS_BODY feature_layout::~feature_layout() = default;

GRADUS_BODY feature_layout::feature_layout(feature_layout_settings s) : s_(std::move(s)) {
  if (s_.input_layer.empty() && s_.linear_model.empty())
    raise(status::invalid_argument, "feature_layout: expected columns, found none");
  if (!s_.input_layer.empty()) detail::sort_columns(s_.input_layer, "input_layer");
  if (!s_.linear_model.empty()) detail::sort_columns(s_.linear_model, "linear_model");
  if (s_.ids_per_example < 1)
    raise(status::invalid_argument,
          text("feature_layout: expected ids_per_example of 1 or more, found ", s_.ids_per_example));
  for (const auto& [name, n] : s_.ids_of)
    if (n < 1)
      raise(status::invalid_argument,
            text("feature_layout: expected ids_of \"", name, "\" to be 1 or more, found ", n));
  for (const auto& c : s_.input_layer) c.embedding() != nullptr ? add_ids(*c.categorical()) : add_dense(c);
  for (const auto& c : s_.linear_model) c.dense() != nullptr ? add_dense(*c.dense()) : add_ids(*c.categorical());
  for (const auto& c : s_.keep) parts_.push_back(c);
  for (std::size_t i = 0; i < parts_.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (parts_[i].name == parts_[k].name)
        raise(status::invalid_argument, text("feature_layout: \"", parts_[i].name,
                                             "\" would be two components; rename the one that is kept, or let a "
                                             "map copy it under another name and keep the copy"));
}

GRADUS_BODY std::int64_t feature_layout::room(const categorical_column& c) const {
  return c.rule().widest([this](std::string_view key) {
    for (const auto& [name, n] : s_.ids_of)
      if (name == key) return n;
    return s_.ids_per_example;
  });
}

GRADUS_BODY void feature_layout::operator()(const datum& from, datum& to) const {
  if (from.size() == 0 || from.about(0).dims.rank == 0)
    raise(status::invalid_argument, "feature_layout: expected a batch; put .map behind .batch or .padded_batch");
  features examples(from.about(0).dims[0]);
  for (const auto& need : needs_) {
    bool there = need.default_value.empty();
    for (std::size_t k = 0; k < from.size(); ++k) there = there || from.about(k).name == need.key;
    if (!there) continue;  // the column then uses its default
    const const_tensor_view v = from[need.key];
    examples.add(detail::feature_of({need.key, v.type, v.dims}, v, need));
  }
  to.conform(parts_, examples.rows());
  write_columns(examples, to);
  for (const auto& c : s_.keep) {
    const const_tensor_view v = from[c.name];
    if (v.type != c.type || !(v.dims == detail::with_lead(examples.rows(), c.dims)))
      raise(status::invalid_argument, text("feature_layout keeps \"", c.name, "\" as ", name_of(c.type), ' ',
                                           to_text(c.dims), " of each example, found ", name_of(v.type), ' ',
                                           to_text(v.dims), " in a batch of ", examples.rows()));
    if (v.size_bytes() != 0) std::memcpy(to[c.name].mutable_data(), v.data, v.size_bytes());
  }
}

GRADUS_BODY void feature_layout::write(const features& examples, datum& to) const {
  to.conform(parts_, examples.rows());
  write_columns(examples, to);
  for (const auto& c : s_.keep) {
    const tensor_view part = to[c.name];
    if (const feature* f = examples.find(c.name); f != nullptr)
      detail::keep_feature(*f, c, part);
    else if (part.size_bytes() != 0)
      std::memset(part.mutable_data(), 0, part.size_bytes());  // `to` may hold an earlier batch
  }
}

GRADUS_BODY void feature_layout::write_columns(const features& examples, datum& to) const {
  for (const auto& c : dense_) c.read(examples, to.values<float>(c.name()).data(), c.width());
  id_lists ids;
  for (const auto& c : sparse_) {
    const std::int64_t n = room(c);
    ids.most = n;
    c.ids(examples, ids);
    ids.pad_ids(n, to.values<std::int64_t>(text(c.name(), "/ids")));
    if (c.weighted()) ids.pad_weights(n, to.values<float>(text(c.name(), "/weights")));
  }
}

GRADUS_BODY void feature_layout::add_dense(const dense_column& c) {
  for (const auto& other : dense_)
    if (other.name() == c.name()) return check_same(c.name(), other.same_as(c));
  detail::join_needs(needs_, c.needs());
  parts_.push_back({c.name(), dtype::float32, {c.width()}});
  dense_.push_back(c);
}

GRADUS_BODY void feature_layout::add_ids(const categorical_column& c) {
  for (const auto& other : sparse_)
    if (other.name() == c.name()) return check_same(c.name(), &other.rule() == &c.rule());
  const std::int64_t n = room(c);
  if (n < 1)
    raise(status::invalid_argument,
          text("feature_layout: expected room for 1 id or more of \"", c.name(), "\", found ", n));
  detail::join_needs(needs_, c.needs());
  parts_.push_back({text(c.name(), "/ids"), dtype::int64, {n}});
  if (c.weighted()) parts_.push_back({text(c.name(), "/weights"), dtype::float32, {n}});
  sparse_.push_back(c);
}

GRADUS_BODY void feature_layout::check_same(const std::string& name, bool same) {
  if (!same)
    raise(status::invalid_argument, text("feature_layout: \"", name,
                                         "\" is two different columns; make the column "
                                         "once and use it in both places"));
}

}  // namespace gradus
