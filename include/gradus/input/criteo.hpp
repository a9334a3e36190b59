// This reader takes Criteo's click logs. A line has a label, 13 integers and 26 categories of 8 hexadecimal digits,
// with tabs between them; any of these fields may be empty.
//
//   criteo("train.txt", {.log_transform = true, .hash_buckets = 100000})
//
//   "label"       int32               absent with .labels = false (the test files)
//   "integers"    float32 [13]        a missing one is .missing; log_transform: log(1 + max(x, 0))
//   "categories"  int64 [26]          the digits as a number, below 2^32; a missing one is -1; hash_buckets: modulo
//
// docs/formats/criteo.md has the details.
#pragma once
#include "../base/build.hpp"

#include <array>
#include <cmath>

#include "dataset.hpp"
#include "record_files.hpp"
#include "text_number.hpp"

namespace gradus::inline GRADUS_BUILD {

struct criteo_options {
  bool labels = true;             // 40 fields; false: 39
  float missing = 0;              // the value of a missing integer; not transformed
  bool log_transform = false;     // log(1 + max(x, 0)) of the integers that are not missing
  std::int64_t hash_buckets = 0;  // categories modulo this; 0: unchanged
  compression_type compression = compression_type::automatic;
  bool ignore_errors = false;  // pass over bad records and damaged files; skipped() counts them
  reader_limits limits = {};
};

class criteo_dataset final : public composable<criteo_dataset> {
public:
  static constexpr std::int64_t integers = 13, categories = 26;

  // Raises invalid_argument for a negative number of buckets.
  explicit criteo_dataset(file_list files, const criteo_options& how = {}, const any_file_system& fs = {});

  const components& element_spec() const { return spec_; }
  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n);
  // Returns the number of records and damaged files that ignore_errors has passed over.
  std::int64_t skipped() const { return files_.skipped(); }
  void rewind() { files_.rewind(); }
  void define(std::string& to) const;
  void write(position_writer& to) const { files_.write(to); }
  void read(position_reader& from) { files_.read(from); }

private:
  using found_record = detail::found_record;
  struct row {
    std::int32_t* label;
    float* integer;
    std::int64_t* category;
  };

  bool next_record(const row& to);

  // Returns false if the line is bad; files_.problem then has the reason.
  bool parse(std::string_view line, const row& to);
  static int hex_digit(char c);
  static std::string_view field(const char* from, const char* end);
  template <class... Pieces>
  bool wrong(const Pieces&... pieces) {
    files_.problem = text(pieces...);
    return false;
  }

  detail::record_files files_;
  criteo_options how_;
  components spec_;
  // The destination of records that are passed over.
  std::int32_t no_label_ = 0;
  float nowhere_integers_[integers] = {};
  std::int64_t nowhere_categories_[categories] = {};
};

// Reading raises the errors of opening a file, data_loss for a bad record or a damaged file (with the file, record,
// line and byte), and resource_exhausted for a line longer than the limit; the next call goes on behind it.
criteo_dataset criteo(file_list files, const criteo_options& how = {}, const any_file_system& fs = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "criteo.ipp"
#endif
