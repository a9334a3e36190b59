// All readers of files of records share this class, which reads one file after the other. A reader says where a record
// ends and what it holds; this class finds the next one, goes there again, and handles limits, errors and bad records.
//
// The place of the next record is its file, its byte in the file's decompressed content, and the numbers of the record
// and the line. Memory: a buffer, and as much as the longest record has.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// A reader's finding at the beginning of the given bytes.
struct found_record {
  enum class kind {
    whole,
    partial,  // its end was not shown
    passed,   // no record: a header, a comment
    bad       // a record, and record_files::problem says what is wrong with it
  } what = kind::whole;
  std::size_t bytes = 0;  // with what ends it
  std::int64_t lines = 1;
};

class record_files {
public:
  // Messages call the format `reader`. Error: invalid_argument for no file.
  record_files(std::string_view reader, file_list files, const file_reading& how, const any_file_system& fs);
  // A copy opens the file for itself.
  record_files(const record_files& o);
  record_files(record_files&&) = default;
  record_files& operator=(record_files&&) = default;
  record_files& operator=(const record_files& o);

  // The next record. `parse(std::string_view bytes, bool last)` gets the next bytes, more of them if it returns
  // `partial`, until with `last` the file has no more; each call begins at the record's beginning. False after the last
  // record. Errors: data_loss for a bad record or a damaged file, resource_exhausted for one beyond the limit; the next
  // call goes on behind it. With ignore_errors they are counted, and nothing is raised. A file that cannot be opened or
  // read raises always, and the next call tries again; so does one that becomes larger than the limits allow, behind
  // which the next file comes.
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
  // The problem of the record that was reported as bad.
  std::string problem;

  // True if nothing of the file was returned yet, not even as bad: a header may stand there.
  bool at_first_record() const { return at_.record == 0; }
  bool inside_file() const { return at_.byte != 0; }
  std::int64_t file_number() const { return at_.file; }
  // Bad records, and damaged files, that were passed over.
  std::int64_t skipped() const { return skipped_; }

  void rewind() { go_to({}); }
  // The directories do not count, the names do.
  std::string definition() const;
  void write(position_writer& to) const;
  void read(position_reader& from);

private:
  struct place_in_files {
    std::int64_t file = 0, byte = 0, record = 0, line = 0;
  };
  static std::string_view as_chars(std::span<const std::byte> b);

  // Stands at bytes of a file; false after the last one.
  bool ready();
  void advance(const found_record& found, std::int64_t records);
  // Over a record whose end is too far away: to the end of the line.
  void pass_line();
  void next_file() { go_to({.file = at_.file + 1}); }
  void go_to(const place_in_files& at);
  const std::string& path() const { return paths_[static_cast<std::size_t>(at_.file)]; }
  std::string place(const place_in_files& at) const;

  std::string reader_;
  std::vector<std::string> paths_;
  file_reading how_;
  std::function<std::unique_ptr<file_stream>(const std::string&)> open_;
  std::unique_ptr<file_stream> in_;  // open at at_, or nothing
  place_in_files at_;
  std::int64_t skipped_ = 0;
};

// The line at the beginning of `bytes`, without \n or \r\n. False if its end is not there.
bool line_in(std::string_view bytes, bool last, std::string_view& line, found_record& found);

}  // namespace detail
}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "record_files.ipp"
#endif
