// The bodies of pushed_gradients.hpp.
#pragma once
#include <utility>

#include "../base/body.hpp"
#include "pushed_gradients.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void pushed_gradients::expect(std::string_view name, std::uint32_t shard, bool has_rows) {
  variables_.push_back({std::string(name), shard, parts_.at(shard).size(), has_rows, {}, {}});
  parts_[shard].resize(parts_[shard].size() + (has_rows ? 2 : 1));
  is_sent_[shard].resize(parts_[shard].size());
}

GRADUS_BODY void pushed_gradients::restart() {
  seen_ = 0;
  for (piece& p : ahead_) p.slices.clear(), p.at.clear(), p.bytes = 0;
  if (!std::exchange(any_sent_, false)) return;
  for (auto& sent : is_sent_) sent.assign(sent.size(), false);
}

GRADUS_BODY void pushed_gradients::add(const named_gradient& g) {
  variable* v = nullptr;
  for (std::size_t i = 0; i < variables_.size() && v == nullptr; ++i) {
    if (++found_ >= variables_.size()) found_ = 0;
    if (variables_[found_].name == g.name) v = &variables_[found_];
  }
  if (v == nullptr) raise(status::not_found, text("no variable \"", g.name, "\" is shared with the cluster"));
  ++seen_;
  wire_slice* const to = parts_[v->shard].data() + v->at;
  const std::span<const std::byte> values = g.values.bytes();
  if (!v->has_rows) {
    to[0] = {v->name, g.values.type, 0, values, slice_role::dense};
    piece& p = ahead_[v->shard];
    p.slices.push_back(to[0]), p.at.push_back(v->at), p.bytes += values.size();
    return;
  }
  v->rows.resize(g.rows.size());
  for (std::size_t i = 0; i < v->rows.size(); ++i)
    v->rows[i] = g.rows.type == int64 ? g.rows.as<std::int64_t>()[i] : g.rows.as<std::int32_t>()[i];
  v->values.assign(values.begin(), values.end());
  to[0] = {v->name, int64, 0, std::as_bytes(std::span(v->rows)), slice_role::rows};
  to[1] = {v->name, g.values.type, 0, v->values, slice_role::values};
}

GRADUS_BODY std::span<const std::vector<wire_slice>> pushed_gradients::by_shard() const {
  if (seen_ != variables_.size())
    raise(status::internal, text("a step gave ", seen_, " gradients of ", variables_.size(), " variables"));
  return parts_;
}

GRADUS_BODY void pushed_gradients::take_ahead(std::uint32_t shard) {
  piece& p = ahead_[shard];
  for (const std::size_t i : p.at) is_sent_[shard][i] = true;
  any_sent_ = true;
  p.slices.clear(), p.at.clear(), p.bytes = 0;
}

GRADUS_BODY std::span<const std::vector<wire_slice>> pushed_gradients::rest() {
  if (!any_sent_) return {};
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    rest_[k].clear();
    for (std::size_t i = 0; i < parts_[k].size(); ++i)
      if (!is_sent_[k][i]) rest_[k].push_back(parts_[k][i]);
  }
  return rest_;
}

}  // namespace gradus::detail
