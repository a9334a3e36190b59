// tf_record gives the records of TFRecord files, as TensorFlow's TFRecordDataset does.
//
//   auto records = tf_record({"train-0.tfrecord", "train-1.tfrecord.gz"});
//   for (const datum& r : records) use(r.values<std::uint8_t>("record"));
//
// An element has one component, "record", uint8 [any_extent], which holds the bytes. tf_example.hpp reads records that
// are tf.train.Examples. Files may be of any size, compressed or not: only a window of the file, as large as its
// largest record, is in memory. The first bytes of a file show whether it is compressed: if they begin with a record
// header whose checksum is right, it is not.
//
// Every checksum is verified. For damaged data a pull raises data_loss (resource_exhausted for a record longer than the
// limit) with the file, the record and the byte. The next pull goes on behind the record if only its payload was
// damaged or too long, and with the next file if the file is truncated there or the checksum of a length is wrong. With
// ignore_errors nothing is raised, and `skipped()` counts these cases. A compressed file that becomes larger than the
// limits allow is an error in any case, and the next pull goes on with the next file. A file that cannot be opened or
// read is an error in any case, and the next pull tries again.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../store/crc32c.hpp"
#include "../store/file_stream.hpp"
#include "../store/record.hpp"
#include "record_files.hpp"
#include "stage.hpp"

namespace gradus::inline GRADUS_BUILD {

struct tf_record_options {
  compression_type compression = compression_type::automatic;
  bool ignore_errors = false;
  reader_limits limits = {};
  std::size_t buffer_bytes = std::size_t{1} << 18;  // read from a file at once; a longer record makes it grow
};

class tf_record_dataset final : public composable<tf_record_dataset> {
public:
  // Raises invalid_argument if there is no file. Each file is opened when it is read.
  explicit tf_record_dataset(file_list files, const tf_record_options& options = {}, const any_file_system& fs = {});
  tf_record_dataset(tf_record_dataset&&) = default;
  tf_record_dataset& operator=(tf_record_dataset&&) = default;
  // A copy opens the file itself, at the same place.
  tf_record_dataset(const tf_record_dataset& o);
  tf_record_dataset& operator=(const tf_record_dataset& o);

  const components& element_spec() const { return spec_; }
  // Sets `payload` to the next record, which stays in memory until the next call. Returns false at the end.
  bool next_record(std::span<const std::byte>& payload);
  bool pull(datum& out);
  // Passes over n records. `out` must be empty, since records differ in size.
  std::int64_t pull(std::span<const tensor_view> out, std::int64_t, std::int64_t n);
  void rewind() { go_to({.skipped = at_.skipped}); }
  // Returns the number of records that ignore_errors left out, and of files whose rest it left out.
  std::int64_t skipped() const { return at_.skipped; }
  // Returns the place of the last record: its file, its number (counted from 1) and its byte in the file's content.
  std::string place() const;

  void define(std::string& to) const;
  // The position is the file, the byte in its decompressed content and the number of the next record, and the number of
  // skipped records.
  void write(position_writer& to) const;
  void read(position_reader& from);

private:
  struct place_in_files {
    std::int64_t file = 0;
    std::uint64_t byte = 0;
    std::int64_t record = 0, skipped = 0;
  };
  const std::string& path(std::int64_t file) const { return (*files_)[static_cast<std::size_t>(file)]; }
  void go_to(const place_in_files& p);
  void next_file() { go_to({.file = at_.file + 1, .skipped = at_.skipped}); }

  std::string place(const place_in_files& p) const;

  // Opens a stream at the place. Returns false if the file is not compressed as the options say.
  bool open(std::string& problem);
  // Copies in pieces. C libraries copy large blocks by rep movsb, which on some processors is much slower where both
  // addresses have nearly the same offset in their pages (measured: a third of the time to read 64 KB records), and a
  // record may have any offset.
  static void copy(std::span<const std::byte> from, std::byte* to);
  static bool is_record(const datum& d);
  static bool is_header(std::span<const std::byte> start);
  // Takes the record at the front of these bytes, which hold all of it. Returns false if it is damaged; the position
  // then stays as it was.
  bool take_front(std::span<const std::byte> bytes, std::uint64_t n, std::span<const std::byte>& payload);
  void advance(std::size_t bytes);
  bool next_slowly(std::span<const std::byte>& payload);
  // Returns true for a record. Returns false with a `problem`, or with none at the end of a file.
  bool step(std::span<const std::byte>& payload, std::string& problem);
  // Passes over a record that is not wanted. If the file ends inside it, the next file comes.
  void pass_over(std::uint64_t n);

  components spec_ = {{"record", uint8, {any_extent}}};
  std::shared_ptr<const std::vector<std::string>> files_;
  tf_record_options options_;
  std::function<file_stream(const std::string&, compression_type)> open_;
  place_in_files at_;             // where the next record begins
  std::uint64_t last_bytes_ = 0;  // of the last record, with header and footer
  std::optional<file_stream> stream_;
  bool too_long_ = false;
};

tf_record_dataset tf_record(file_list files, const tf_record_options& options = {}, const any_file_system& fs = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "tf_record.ipp"
#endif
