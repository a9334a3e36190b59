// The bodies of pushed_gradients.hpp.
#pragma once
#include <cstring>
#include <utility>

#include "../base/body.hpp"
#include "pushed_gradients.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void pushed_gradients::expect(const store_variable& v) {
  variables_.push_back({v, parts_.at(v.shard).size(), {}, {}});
  parts_[v.shard].resize(parts_[v.shard].size() + (v.takes_rows ? 2 : 1));
  is_sent_[v.shard].resize(parts_[v.shard].size());
}

GRADUS_BODY void pushed_gradients::restart() {
  seen_ = 0;
  for (piece& p : ahead_) p.slices.clear(), p.at.clear(), p.bytes = 0;
  if (std::exchange(has_more_, false))
    for (std::size_t k = 0; k < parts_.size(); ++k) parts_[k].pop_back(), is_sent_[k].pop_back();
  if (!std::exchange(any_sent_, false)) return;
  for (auto& sent : is_sent_) sent.assign(sent.size(), false);
}

GRADUS_BODY void pushed_gradients::add(const named_gradient& g) {
  const auto is_of = [&](std::size_t i) { return variables_[i].about.known_as() == g.name; };
  std::size_t left = variables_.size();
  while (left != 0 && !is_of(found_ = found_ + 1 < variables_.size() ? found_ + 1 : 0)) --left;
  if (left == 0) raise(status::not_found, text("no variable \"", g.name, "\" is shared with the cluster"));
  while (variables_[found_].about.first_row != 0) --found_;
  take(variables_[found_], g);
  while (found_ + 1 < variables_.size() && variables_[found_ + 1].about.first_row != 0) take(variables_[++found_], g);
}

GRADUS_BODY void pushed_gradients::add_to_all(const wire_slice& s) {
  for (std::size_t k = 0; k < parts_.size(); ++k) parts_[k].push_back(s), is_sent_[k].push_back(false);
  has_more_ = true;
}

GRADUS_BODY void pushed_gradients::take(variable& v, const named_gradient& g) {
  ++seen_;
  wire_slice* const to = parts_[v.about.shard].data() + v.at;
  if (v.about.takes_rows) return take_rows(v, g, to);
  std::span<const std::byte> values = g.values.bytes();
  if (v.about.is_part()) values = values.subspan(v.about.first_element() * size_of(v.about.type), v.about.bytes());
  to[0] = {v.about.name, g.values.type, 0, values, slice_role::dense};
  piece& p = ahead_[v.about.shard];
  p.slices.push_back(to[0]), p.at.push_back(v.at), p.bytes += values.size();
}

GRADUS_BODY void pushed_gradients::take_rows(variable& v, const named_gradient& g, wire_slice* to) {
  const std::span<const std::byte> values = g.values.bytes();
  const std::size_t n = g.rows.size(), row_bytes = n == 0 ? 0 : values.size() / n;
  v.rows.resize(n);
  for (std::size_t i = 0; i < n; ++i)
    v.rows[i] = g.rows.type == int64 ? g.rows.as<std::int64_t>()[i] : g.rows.as<std::int32_t>()[i];
  v.values.assign(values.begin(), values.end());
  if (v.about.is_part() && !v.about.all_rows) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t row = v.rows[i] - v.about.first_row;
      if (row < 0 || row >= v.about.dims[0]) continue;
      if (row_bytes != 0) std::memcpy(v.values.data() + kept * row_bytes, values.data() + i * row_bytes, row_bytes);
      v.rows[kept++] = row;
    }
    v.rows.resize(kept), v.values.resize(kept * row_bytes);
  }
  to[0] = {v.about.name, int64, 0, std::as_bytes(std::span(v.rows)), slice_role::rows};
  to[1] = {v.about.name, g.values.type, 0, v.values, slice_role::values};
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
