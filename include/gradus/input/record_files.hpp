// The readers of text records (csv, libsvm, criteo, text_line) share this class, which reads one file after the other.
// A reader finds where a record ends and parses it; this class finds the next record, returns to a saved place, and
// handles limits, errors and bad records.
//
// The place of the next record is its file, its byte in the file's decompressed content, and the numbers of the record
// and the line. The memory in use is a buffer and the size of the longest record.
#pragma once
#include "../base/build.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../base/owned.hpp"
#include "../store/crc32c.hpp"
#include "../store/file_stream.hpp"
#include "stage.hpp"

namespace gradus::inline GRADUS_BUILD {

// A file, or several; a reader takes either.
class file_list {
public:
  file_list(std::string path) : paths_{std::move(path)} {}
  file_list(const char* path) : paths_{path} {}
  file_list(std::vector<std::string> paths) : paths_(std::move(paths)) {}
  file_list(std::initializer_list<std::string> paths) : paths_(paths) {}
  std::vector<std::string> paths() && { return std::move(paths_); }

private:
  std::vector<std::string> paths_;
};

namespace detail {

struct file_reading {
  compression_type compression;
  bool ignore_errors;
  reader_limits limits;
};

// The record that a reader found at the beginning of the given bytes.
struct found_record {
  enum class kind {
    whole,
    partial,  // its end is not in these bytes
    passed,   // not a record, but a header or a comment
    bad       // a bad record; record_files::problem describes what is wrong with it
  } what = kind::whole;
  std::size_t bytes = 0;  // of the record, with the line end behind it
  std::int64_t lines = 1;
};

class record_files {
public:
  // Error messages call the format `reader`. Raises invalid_argument if there is no file.
  record_files(std::string_view reader, file_list files, const file_reading& how, const any_file_system& fs);
  // A copy opens the file itself.
  record_files(const record_files& o);
  record_files(record_files&&) = default;
  record_files& operator=(record_files&&) = default;
  record_files& operator=(const record_files& o);

  // Reads the next record; returns false after the last one. It calls `parse(std::string_view bytes, bool last)` with
  // the next bytes, and again with more of them as long as parse returns `partial`; `last` is true when the file has no
  // more. The bytes of each call begin where the record begins. Raises data_loss for a bad record or a damaged file,
  // and resource_exhausted for a record longer than the limit; the next call goes on behind it. With ignore_errors
  // these are counted, and nothing is raised. A file that cannot be opened or read always raises, and the next call
  // tries again. A file that becomes larger than the limits allow always raises too, and the next call goes on with the
  // next file.
  template <class Parse>
  bool next(Parse&& parse) {
    using kind = found_record::kind;
    for (;;) {
      found_record found;
      place_in_files begun;
      try {
        if (!ready()) return false;
        begun = at_;
        auto bytes = in_->ahead(1);
        bool last = false;
        while ((found = parse(as_chars(bytes), last)).what == kind::partial && !last &&
               bytes.size() <= how_.limits.record_bytes) {
          const auto more = in_->ahead(bytes.size() + 1);
          last = more.size() == bytes.size();
          bytes = more;
        }
        if (found.what == kind::partial)
          pass_line();
        else
          advance(found, found.what == kind::passed ? 0 : 1);
      } catch (const error& e) {
        if (in_ && in_->too_large()) {  // an error in any case: the rest of the file may be good
          const std::string where = text(e.what(), " (in ", place(at_), ")");
          next_file();
          raise(e.kind(), where);
        }
        if (e.kind() != status::data_loss || !in_ ||
            in_->device_failed()) {  // nothing is lost: the file is opened again there
          in_.reset();
          throw;
        }
        const std::string where = text(e.what(), " (in ", place(at_), ")");
        next_file();
        if (!how_.ignore_errors) raise(e.kind(), where);
        ++skipped_;
        continue;
      }
      if (found.what == kind::passed) continue;
      const bool too_long = found.what == kind::partial || found.bytes > how_.limits.record_bytes;
      if (found.what == kind::whole && !too_long) return true;
      if (how_.ignore_errors) {
        ++skipped_;
        continue;
      }
      const std::string where = text(reader_, " ", place(begun), ": ");
      if (too_long)
        raise(status::resource_exhausted, text(where, "expected at most ", how_.limits.record_bytes,
                                               " bytes, found more (an open quote, or no text?); raise "
                                               "reader_limits::record_bytes if the file is to be trusted"));
      raise(status::data_loss, where + problem);
    }
  }
  // What is wrong with the record that `parse` reported as bad.
  std::string problem;

  // Returns true if no record of the file was returned yet, good or bad, so that a header may come.
  bool at_first_record() const { return at_.record == 0; }
  bool inside_file() const { return at_.byte != 0; }
  std::int64_t file_number() const { return at_.file; }
  // Returns the number of bad records and damaged files that were passed over.
  std::int64_t skipped() const { return skipped_; }

  void rewind() { go_to({}); }
  // Returns a text that identifies the files by their names, without the directories.
  std::string definition() const;
  void write(position_writer& to) const;
  void read(position_reader& from);

private:
  struct place_in_files {
    std::int64_t file = 0, byte = 0, record = 0, line = 0;
  };
  static std::string_view as_chars(std::span<const std::byte> b);

  // Opens the next file that has bytes left, if none is open. Returns false after the last file.
  bool ready();
  void advance(const found_record& found, std::int64_t records);
  // Passes over a record whose end is too far away, up to the end of the line.
  void pass_line();
  void next_file() { go_to({.file = at_.file + 1}); }
  void go_to(const place_in_files& at);
  const std::string& path() const { return paths_[static_cast<std::size_t>(at_.file)]; }
  std::string place(const place_in_files& at) const;

  std::string reader_;
  std::vector<std::string> paths_;
  file_reading how_;
  std::function<std::unique_ptr<file_stream>(const std::string&)> open_;
  detail::owned<file_stream> in_;  // open at at_, or null
  place_in_files at_;
  std::int64_t skipped_ = 0;
};

// Sets `line` to the line at the beginning of `bytes`, without \n or \r\n. Returns false if its end is not in `bytes`.
bool line_in(std::string_view bytes, bool last, std::string_view& line, found_record& found);

}  // namespace detail
}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "record_files.ipp"
#endif
