// This header records which rows of large tables have changed since the last checkpoint, for delta checkpoints
// (checkpoint/delta.hpp). Each row takes one bit, so a table of a hundred million rows takes 12.5 MB.
#pragma once
#include "../base/build.hpp"

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

namespace gradus::inline GRADUS_BUILD {

// One bit for each row of a table, set if the row was touched.
class touched_rows {
public:
  explicit touched_rows(std::int64_t rows) : rows_(rows), words_(static_cast<std::size_t>((rows + 63) / 64)) {}

  void mark(std::int64_t row);
  // Marks the rows of one sparse update, which may be in any order and occur more than once.
  template <std::integral Index>
  void mark(std::span<const Index> rows) {
    for (const Index row : rows) mark(static_cast<std::int64_t>(row));
  }
  // Marks all rows, after an update that is not sparse.
  void mark_all();
  void mark(const touched_rows& others);
  void clear() { std::fill(words_.begin(), words_.end(), std::uint64_t{0}); }

  std::int64_t rows() const { return rows_; }
  std::int64_t touched() const;
  std::vector<std::int64_t> list() const;

private:
  std::int64_t rows_;
  std::vector<std::uint64_t> words_;
};

// A row_tracker holds the tables of a state list whose changed rows are tracked, and the marks of these rows. Only one
// thread may use it at a time.
class row_tracker {
public:
  // Tracks the entry `name` as a table with so many rows, which is its first extent. Raises already_exists.
  touched_rows& table(std::string_view name, std::int64_t rows);
  // Tracks the entry `name`, such as a slot or a moving average, by the marks of that table: it changes in the same
  // rows.
  void follows(std::string_view name, std::string_view table);
  // Returns the rows of a table; the reference stays valid as long as the tracker does. Raises not_found.
  touched_rows& rows_of(std::string_view table);
  // Returns the rows of an entry; nullptr if it is not tracked.
  const touched_rows* find(std::string_view entry) const;

  // Returns the marks so far and clears them; later marks are collected anew.
  row_tracker take();
  // Puts back marks that were taken but not saved.
  void put_back(const row_tracker& marks);
  void clear();

private:
  std::map<std::string, touched_rows, std::less<>> tables_;
  std::map<std::string, std::string, std::less<>> followers_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "touched_rows.ipp"
#endif
