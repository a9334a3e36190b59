// A delta checkpoint holds the changed rows of large tables, and everything else whole. A delta follows either a base,
// which is a whole checkpoint, or the delta before it; the base and the deltas together equal the whole checkpoint, bit
// for bit.
//
//   row_tracker tracker;
//   tracker.table("emb", rows), tracker.follows("emb/Adagrad", "emb");
//   touched_rows& touched = tracker.rows_of("emb");            // keep the reference
//   touched.mark(indices);                                     // after each sparse update
//
//   auto chain = begin_chain({base_path, &base});              // when the base is saved: tracker.clear() as well
//   auto marks = tracker.take();
//   auto d = make_delta(list, marks, chain, step);             // a snapshot, for any codec
//   ... save d.content as `file`; if that fails: tracker.put_back(marks) ...
//   chain = extended(chain, {file, &d.content});
//
//   restore_deltas(list, base, deltas);                        // restores all of them in this order or changes nothing
//   auto whole = compact(base, deltas);                        // a new base, after which these may be deleted
//
// Every touched row must be marked: a row that changes unmarked is lost. docs/formats/delta.md has the format.
#pragma once
#include "../store/crc32c.hpp"
#include "match.hpp"
#include "touched_rows.hpp"

namespace gradus::inline GRADUS_BUILD {

// A snapshot, and the name of the file that holds it or will hold it.
struct named_snapshot {
  std::string file;
  const snapshot* content = nullptr;
};

// A snapshot together with those of its records' bytes that it owns.
struct owned_snapshot {
  snapshot content;
  std::deque<std::vector<std::byte>> owned = {};

  std::span<const std::byte> own(std::vector<std::byte> bytes) { return owned.emplace_back(std::move(bytes)); }
};

// A delta's reference to a checkpoint: the file (for messages; it may have moved), the step, and the checksum of its
// content.
struct checkpoint_link {
  std::string file;
  std::int64_t step = 0;
  std::uint32_t checksum = 0;
};

// The base, the checkpoint that the next delta follows, and how many deltas there are.
struct delta_chain {
  checkpoint_link base, last;
  std::int64_t deltas = 0;
};

// These are the keys of a delta's metadata.
struct delta_keys {
  static constexpr std::string_view number = "delta", base = "base", base_step = "base_step",
                                    base_checksum = "base_checksum", after = "after", after_step = "after_step",
                                    after_checksum = "after_checksum", checksum = "delta_checksum";
  static constexpr std::string_view all[] = {number, base,       base_step,      base_checksum,
                                             after,  after_step, after_checksum, checksum};
  static constexpr std::string_view rows = ":rows",
                                    values = ":values";  // the suffixes of the records with a table's changed rows
};

inline bool is_delta(const snapshot& s) { return s.about.contains(std::string(delta_keys::number)); }

namespace detail {
std::string_view said(const snapshot& s, std::string_view key);
}  // namespace detail

// Returns the checksum of the step, of the records in any order, and of a delta's place in its chain, but not of the
// rest of the metadata, which a codec may change.
std::uint32_t content_checksum(const snapshot& s);

// Begins a chain at this base, whose content is read once for the checksum. Raises failed_precondition if it is a
// delta.
delta_chain begin_chain(const named_snapshot& base);
// Returns the chain after this delta, which make_delta made for that chain.
delta_chain extended(const delta_chain& chain, const named_snapshot& delta);

// Makes a delta of the changes since the chain's last checkpoint. It holds the marked rows of a tracked table, or the
// whole table if the rows and their indices would take more bytes, and everything else whole. Rows and blobs are
// copied; the other records point into the live state unless `copy` is true. Raises invalid_argument for a table whose
// rows are not as many as the tracker has.
owned_snapshot make_delta(const state_list& list, const row_tracker& marks, const delta_chain& chain, std::int64_t step,
                          metadata about = {}, bool copy = false);

namespace detail {

// This is an entry put together from a base and its deltas: the last whole record, and the rows of the deltas after it.
struct merged_record {
  const record* whole = nullptr;
  struct rows {
    const record *indices, *values;
  };
  std::vector<rows> patches = {};
};
struct merged_snapshot {
  delta_chain chain;
  std::vector<merged_record> records;
};

std::int64_t row_at(const record& indices, std::size_t i);
// Returns the reason why these records cannot be rows of that table; an empty text if they can.
std::string rows_problem(const record& table, const record& indices, const record& values);

// Writes the rows into a table's bytes. They must have been checked.
void put_rows(const merged_record& m, std::span<std::byte> table);

// Returns the reason why this delta does not follow the chain; an empty text if it does. The status is
// failed_precondition if it belongs to another chain or comes out of order, data_loss if its content, or that of the
// checkpoint before it, is not what was written.
std::pair<status, std::string> follow_problem(const delta_chain& chain, const named_snapshot& delta);
// Returns the first such reason among all deltas, in their order.
std::pair<status, std::string> chain_problem(const named_snapshot& base, std::span<const named_snapshot> deltas);

merged_snapshot merge(const named_snapshot& base, std::span<const named_snapshot> deltas);

// Returns the metadata of the newest checkpoint, without the entries that make it a delta.
metadata about_of(const snapshot& newest);

}  // namespace detail

// Restores a base and the deltas that follow it: all of them, or the first few. Returns the chain, which later deltas
// may continue. `warning` receives the warnings of the restore (saved_input). Raises
//   failed_precondition          a delta does not follow the checkpoint before it, in this order
//   data_loss                    a delta, or the checkpoint before it, is not what was written; the error names it
//   not_found, invalid_argument  the content does not fit; the error names every variable that does not
// Nothing is changed then.
delta_chain restore_deltas(const state_list& list, const named_snapshot& base, std::span<const named_snapshot> deltas,
                           const restore_options& options = {}, std::string* warning = nullptr);

// Returns base and deltas as one whole checkpoint: the one that a save at the last delta's step would have written. Its
// records point into base and deltas, except tables with changed rows, which are copied. Raises the errors of
// restore_deltas about files.
owned_snapshot compact(const named_snapshot& base, std::span<const named_snapshot> deltas);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "delta.ipp"
#endif
