// The bodies of touched_rows.hpp.
#pragma once
#include "../base/body.hpp"
#include "touched_rows.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void touched_rows::mark(std::int64_t row) {
  if (row < 0 || row >= rows_)
    raise(status::invalid_argument,
          text("row ", row, " is marked as changed, but the table has rows 0 to ", rows_ - 1));
  words_[static_cast<std::size_t>(row / 64)] |= std::uint64_t{1} << (row % 64);
}

GRADUS_BODY void touched_rows::mark_all() {
  std::fill(words_.begin(), words_.end(), ~std::uint64_t{0});
  if (rows_ % 64 != 0) words_.back() = (std::uint64_t{1} << (rows_ % 64)) - 1;
}

GRADUS_BODY void touched_rows::mark(const touched_rows& others) {
  if (others.rows_ != rows_) raise(status::internal, "touched_rows: marks of another table");
  for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= others.words_[i];
}

GRADUS_BODY std::int64_t touched_rows::touched() const {
  std::int64_t n = 0;
  for (const auto word : words_) n += std::popcount(word);
  return n;
}

GRADUS_BODY std::vector<std::int64_t> touched_rows::list() const {  // ascending
  std::vector<std::int64_t> out;
  out.reserve(static_cast<std::size_t>(touched()));
  for (std::size_t i = 0; i < words_.size(); ++i)
    for (auto word = words_[i]; word != 0; word &= word - 1)
      out.push_back(static_cast<std::int64_t>(i * 64) + std::countr_zero(word));
  return out;
}

GRADUS_BODY touched_rows& row_tracker::table(std::string_view name, std::int64_t rows) {
  const auto [at, added] = tables_.emplace(name, touched_rows(rows));
  if (!added) raise(status::already_exists, text("the table \"", name, "\" is tracked already"));
  return at->second;
}

GRADUS_BODY void row_tracker::follows(std::string_view name, std::string_view table) {
  rows_of(table);
  followers_.insert_or_assign(std::string(name), std::string(table));
}

GRADUS_BODY touched_rows& row_tracker::rows_of(std::string_view table) {
  const auto at = tables_.find(table);
  if (at == tables_.end()) raise(status::not_found, text("no table \"", table, "\" is tracked; call table() first"));
  return at->second;
}

GRADUS_BODY const touched_rows* row_tracker::find(std::string_view entry) const {
  const auto follower = followers_.find(entry);
  const auto at = tables_.find(follower == followers_.end() ? entry : std::string_view(follower->second));
  return at == tables_.end() ? nullptr : &at->second;
}

GRADUS_BODY row_tracker row_tracker::take() {
  row_tracker out = *this;
  clear();
  return out;
}

GRADUS_BODY void row_tracker::put_back(const row_tracker& marks) {
  for (const auto& [name, rows] : marks.tables_) rows_of(name).mark(rows);
}

GRADUS_BODY void row_tracker::clear() {
  for (auto& [name, rows] : tables_) rows.clear();
}

}  // namespace gradus
