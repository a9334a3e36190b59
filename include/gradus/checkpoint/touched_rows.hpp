// Which rows of large tables have changed since the last checkpoint, for delta checkpoints (checkpoint/delta.hpp). A
// mark costs a bit that is set; a table of a hundred million rows has 12.5 MB of them.
#pragma once
#include <algorithm>
#include <bit>
#include <concepts>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../base/error.hpp"

namespace gradus {

// Which rows of a table have been touched: a bit for each.
class touched_rows {
public:
  explicit touched_rows(std::int64_t rows) : rows_(rows), words_(static_cast<std::size_t>((rows + 63) / 64)) {}

  void mark(std::int64_t row) {
    if (row < 0 || row >= rows_)
      raise(status::invalid_argument,
            text("row ", row, " is marked as changed, but the table has rows 0 to ", rows_ - 1));
    words_[static_cast<std::size_t>(row / 64)] |= std::uint64_t{1} << (row % 64);
  }
  // The rows of one sparse update, in any order, also more than once.
  template <std::integral Index>
  void mark(std::span<const Index> rows) {
    for (const Index row : rows) mark(static_cast<std::int64_t>(row));
  }
  // After an update that is not sparse.
  void mark_all() {
    std::fill(words_.begin(), words_.end(), ~std::uint64_t{0});
    if (rows_ % 64 != 0) words_.back() = (std::uint64_t{1} << (rows_ % 64)) - 1;
  }
  void mark(const touched_rows& others) {
    if (others.rows_ != rows_) raise(status::internal, "touched_rows: marks of another table");
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= others.words_[i];
  }
  void clear() { std::fill(words_.begin(), words_.end(), std::uint64_t{0}); }

  std::int64_t rows() const { return rows_; }
  std::int64_t touched() const {
    std::int64_t n = 0;
    for (const auto word : words_) n += std::popcount(word);
    return n;
  }
  std::vector<std::int64_t> list() const {  // ascending
    std::vector<std::int64_t> out;
    out.reserve(static_cast<std::size_t>(touched()));
    for (std::size_t i = 0; i < words_.size(); ++i)
      for (auto word = words_[i]; word != 0; word &= word - 1)
        out.push_back(static_cast<std::int64_t>(i * 64) + std::countr_zero(word));
    return out;
  }

private:
  std::int64_t rows_;
  std::vector<std::uint64_t> words_;
};

// The tables of a state list whose changed rows are known, and which rows these are. For one thread at a time.
class row_tracker {
public:
  // The entry `name` is a table with so many rows, its first extent. Raises already_exists.
  touched_rows& table(std::string_view name, std::int64_t rows) {
    const auto [at, added] = tables_.emplace(name, touched_rows(rows));
    if (!added) raise(status::already_exists, text("the table \"", name, "\" is tracked already"));
    return at->second;
  }
  // The entry `name` changes in the rows of that table: its slots, its moving average.
  void follows(std::string_view name, std::string_view table) {
    rows_of(table);
    followers_.insert_or_assign(std::string(name), std::string(table));
  }
  // Stays where it is as long as the tracker does. Raises not_found.
  touched_rows& rows_of(std::string_view table) {
    const auto at = tables_.find(table);
    if (at == tables_.end()) raise(status::not_found, text("no table \"", table, "\" is tracked; call table() first"));
    return at->second;
  }
  // The rows of an entry; nullptr if it is not tracked.
  const touched_rows* find(std::string_view entry) const {
    const auto follower = followers_.find(entry);
    const auto at = tables_.find(follower == followers_.end() ? entry : std::string_view(follower->second));
    return at == tables_.end() ? nullptr : &at->second;
  }

  // The marks so far; from here on they are collected anew.
  row_tracker take() {
    row_tracker out = *this;
    clear();
    return out;
  }
  // Marks that were taken, and not saved.
  void put_back(const row_tracker& marks) {
    for (const auto& [name, rows] : marks.tables_) rows_of(name).mark(rows);
  }
  void clear() {
    for (auto& [name, rows] : tables_) rows.clear();
  }

private:
  std::map<std::string, touched_rows, std::less<>> tables_;
  std::map<std::string, std::string, std::less<>> followers_;
};

}  // namespace gradus
