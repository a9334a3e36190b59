// csv reads CSV files: records of fields, in the dialect of tf.data's CsvDataset.
//
//   csv("optdigits.tra", {{"pixels", float32, {64}}, {"label", int32}})           65 fields, two components
//   csv({"a.csv", "b.csv.gz"}, {{"word", uint8, {any_extent}}, {"age", float32, {}, 0}}, {.header = true})
//
// A column takes as many fields as its extents have values; text is uint8 [any_extent], its bytes as they stand.
// Records of numbers go straight into the caller's rows, batch after batch, and nothing is allocated.
// docs/formats/csv.md has the dialect.
#pragma once
#include <cctype>
#include <concepts>
#include <optional>

#include "dataset.hpp"
#include "record_files.hpp"
#include "text_number.hpp"

namespace gradus::inline GRADUS_BUILD {

// The value of an empty field: none (then a field must not be empty), or a number or text.
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
  dtype type = float32;  // int32, int64, float32, float64; uint8 for text
  extents dims = {};     // of one element; text: {any_extent}
  csv_default fallback = {};
};

struct csv_options {
  bool header = false;                         // the first record of every file is none
  char field_delim = ',';                      // any byte but " \n \r
  bool use_quote_delim = true;                 // "a,b" is one field; "" in it is one quote
  std::string na_value = {};                   // a field of this text is as an empty one
  std::vector<std::int64_t> select_cols = {};  // numbers of the fields that are read, increasing; empty: all of them
  char comment = '\0';                         // a record that begins with this byte is passed over with its line
  compression_type compression = compression_type::automatic;
  bool ignore_errors = false;  // pass over bad records and damaged files; skipped() counts them
  reader_limits limits = {};
};

class csv_dataset final : public composable<csv_dataset> {
public:
  // Error: invalid_argument for columns or options that cannot be.
  csv_dataset(file_list files, std::vector<csv_column> columns, const csv_options& how = {},
              const any_file_system& fs = {});

  const components& element_spec() const { return spec_; }
  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n);
  bool pull(datum& out);
  // Records and damaged files that ignore_errors has passed over.
  std::int64_t skipped() const { return files_.skipped(); }
  void rewind();
  void define(std::string& to) const;
  void write(position_writer& to) const { files_.write(to); }
  void read(position_reader& from);

private:
  using found_record = detail::found_record;
  using kind = found_record::kind;

  // Fields in a row that are treated alike.
  struct run {
    dtype type = dtype::none;  // none: they are passed over
    std::int64_t count = 1;
    std::size_t column = 0;
    std::int64_t at = 0;         // of the column's values, the first
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

  // The numbers of a run as long as nothing is unusual about them; returns how many.
  template <class Number>
  std::int64_t numbers(cursor& c, const run& r) {
    auto* to = reinterpret_cast<Number*>(rows_[r.column]) + r.at;
    const char* at = c.at;
    const char delimiter = how_.field_delim;  // here, or every store might change it
    std::int64_t i = 0;
    for (; quick_ && i < r.count; ++i) {
      // Counts of one or two digits are many in data, and branches on which it is are predicted badly.
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

  // The next field, and over what ends it. A view of the file's bytes, or of quoted_.
  std::string_view field(cursor& c, dtype type);
  std::string_view quoted_field(cursor& c, dtype type);
  // Over a delimiter, the end of a line, or at the end of the file.
  void end_field(cursor& c) const;

  void keep(std::string_view f, const run& r, std::int64_t i, std::int64_t number, datum* out);
  // The first problem of a record counts.
  template <class... Pieces>
  void wrong(const Pieces&... pieces) {
    if (!bad_) files_.problem = text(pieces...);
    bad_ = true;
  }

  // Plans and checks the meaning of a record's fields.
  void plan();
  // The runs as the selected fields cut them, with those between.
  void select();
  static bool default_bits(std::string_view value, dtype type, std::uint64_t& bits);

  detail::record_files files_;
  csv_options how_;
  std::vector<csv_column> columns_;
  components spec_;
  std::vector<run> runs_;
  std::int64_t fields_ = 0;  // that are read
  bool text_columns_ = false;
  bool quick_ = true;              // a text that looks like a number is the whole field
  std::int64_t header_seen_ = -1;  // the file whose header was passed over
  // Of the record that is being read.
  std::vector<std::byte*> rows_;
  std::string quoted_;
  bool bad_ = false;
  datum scratch_;
};

// Errors while reading: those of opening a file; data_loss for a bad record or a damaged file, naming file, record,
// line and byte, resource_exhausted for a record above the limit: the next call goes on behind it.
csv_dataset csv(file_list files, std::vector<csv_column> columns, const csv_options& how = {},
                const any_file_system& fs = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "csv.ipp"
#endif
