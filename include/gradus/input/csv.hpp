// csv reads CSV files in the dialect of tf.data's CsvDataset: each record is a row of fields.
//
//   csv("optdigits.tra", {{"pixels", float32, {64}}, {"label", int32}})           65 fields, two components
//   csv({"a.csv", "b.csv.gz"}, {{"word", uint8, {any_extent}}, {"age", float32, {}, 0}}, {.header = true})
//
// A column takes as many fields as its extents have values. A text column is uint8 [any_extent] and holds the bytes of
// the field unchanged. Records of numbers are parsed straight into the caller's rows, batch after batch, without an
// allocation. docs/formats/csv.md has the dialect.
#pragma once
#include "../base/build.hpp"

#include <cctype>
#include <concepts>
#include <optional>

#include "dataset.hpp"
#include "record_files.hpp"
#include "text_number.hpp"

namespace gradus::inline GRADUS_BUILD {

// The value that an empty field gets: a number or text, or none, in which case an empty field is an error.
class csv_default {
public:
  csv_default() = default;
  csv_default(const char* value) : value_(value) {}
  csv_default(std::string value) : value_(std::move(value)) {}
  template <class Number>
    requires std::integral<Number> || std::floating_point<Number>
  csv_default(Number value) : value_(text(value)) {}
  const std::optional<std::string>& value() const { return value_; }

private:
  std::optional<std::string> value_;
};

struct csv_column {
  std::string name;
  dtype type = float32;       // int32, int64, float32, float64; uint8 for text
  extents dims = {};          // of one element; text: {any_extent}
  csv_default fallback = {};  // the value of an empty field; left out: an empty field is an error
};

struct csv_options {
  bool header = false;                         // the first record of every file is a header, which is passed over
  char field_delim = ',';                      // any byte but " \n \r
  bool use_quote_delim = true;                 // "a,b" is one field, in which "" is one quote
  std::string na_value = {};                   // a field with this text counts as empty
  std::vector<std::int64_t> select_cols = {};  // numbers of the fields that are read, increasing; empty: all of them
  char comment = '\0';                         // a record that begins with this byte is passed over with its line
  compression_type compression = compression_type::automatic;
  bool ignore_errors = false;  // pass over bad records and damaged files; skipped() counts them
  reader_limits limits = {};
};

class csv_dataset final : public composable<csv_dataset> {
public:
  // Raises invalid_argument for columns or options that are not valid.
  csv_dataset(file_list files, std::vector<csv_column> columns, const csv_options& how = {},
              const any_file_system& fs = {});
  csv_dataset(const csv_dataset&);
  csv_dataset(csv_dataset&&) noexcept;
  csv_dataset& operator=(const csv_dataset&);
  csv_dataset& operator=(csv_dataset&&) noexcept;
  ~csv_dataset();

  const components& element_spec() const { return spec_; }
  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n);
  bool pull(datum& out);
  // Returns the number of records and damaged files that ignore_errors has passed over.
  std::int64_t skipped() const { return files_.skipped(); }
  void rewind();
  void define(std::string& to) const;
  void write(position_writer& to) const { files_.write(to); }
  void read(position_reader& from);

private:
  using found_record = detail::found_record;
  using kind = found_record::kind;

  // Adjacent fields that are treated alike.
  struct run {
    dtype type = dtype::none;  // none: the fields are passed over
    std::int64_t count = 1;
    std::size_t column = 0;
    std::int64_t at = 0;         // the index of the run's first value in the column
    std::uint64_t fallback = 0;  // the bits of a number
  };
  // How far a record was read.
  struct cursor {
    const char *at, *end;
    bool last;  // nothing comes behind `end`
    enum { inside, record_ended, too_short } state = inside;
    std::int64_t lines = 1;
  };

  bool next_record(datum* out);

  found_record parse(std::string_view bytes, bool last, datum* out);
  static found_record result(const cursor& c, std::string_view bytes, kind what);

  // Parses the numbers of a run as long as their fields are simple (no quotes, no blanks, not empty); returns how many
  // it parsed.
  template <class Number>
  std::int64_t numbers(cursor& c, const run& r) {
    auto* to = reinterpret_cast<Number*>(rows_[r.column]) + r.at;
    const char* at = c.at;
    const char delimiter = how_.field_delim;  // a copy, which no store below can change
    std::int64_t i = 0;
    for (; quick_ && i < r.count; ++i) {
      // Many data are counts of one or two digits, and a branch on the number of digits is predicted badly.
      if (c.end - at > 2) {
        const auto one = static_cast<unsigned char>(at[0] - '0'), two = static_cast<unsigned char>(at[1] - '0');
        const bool both = two < 10;
        if (one < 10 && at[1 + both] == delimiter) {
          to[i] = static_cast<Number>(both ? one * 10 + two : one);
          at += 2 + both;
          continue;
        }
      }
      const char* const past = detail::number_at(at, c.end, to[i]);
      if (past == nullptr || past == c.end) break;
      if (*past == delimiter) {
        at = past + 1;
      } else {
        if (*past != '\n') break;
        at = past + 1, ++i;
        c.state = cursor::record_ended;
        break;
      }
    }
    c.at = at;
    return i;
  }

  // Returns the next field and moves past its end (a delimiter or the end of a line). The result is a view of the
  // file's bytes, or of quoted_.
  std::string_view field(cursor& c, dtype type);
  std::string_view quoted_field(cursor& c, dtype type);
  // Moves past a delimiter or the end of a line; at the end of the file it stays.
  void end_field(cursor& c) const;

  void keep(std::string_view f, const run& r, std::int64_t i, std::int64_t number, datum* out);
  // Marks the record as bad. The first problem of a record is the one that is reported.
  template <class... Pieces>
  void wrong(const Pieces&... pieces) {
    if (!bad_) files_.problem = text(pieces...);
    bad_ = true;
  }

  // Checks the columns and the options, and makes the list of runs.
  void plan();
  // Splits the runs at the selected fields, and adds runs for the fields between them, which are passed over.
  void select();
  static bool default_bits(std::string_view value, dtype type, std::uint64_t& bits);

  detail::record_files files_;
  csv_options how_;
  std::vector<csv_column> columns_;
  components spec_;
  std::vector<run> runs_;
  std::int64_t fields_ = 0;  // the number of fields that are read
  bool text_columns_ = false;
  bool quick_ = true;              // a number before a delimiter is always a whole field, and not na_value
  std::int64_t header_seen_ = -1;  // the number of the file whose header was passed over
  // The state of the record that is being read.
  std::vector<std::byte*> rows_;
  std::string quoted_;
  bool bad_ = false;
  datum scratch_;
};

// Reading raises the errors of opening a file, data_loss for a bad record or a damaged file (with the file, record,
// line and byte), and resource_exhausted for a record longer than the limit; the next call goes on behind it.
csv_dataset csv(file_list files, std::vector<csv_column> columns, const csv_options& how = {},
                const any_file_system& fs = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "csv.ipp"
#endif
