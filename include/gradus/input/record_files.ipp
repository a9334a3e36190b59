// The bodies of record_files.hpp.
#pragma once
#include "../base/body.hpp"
#include "record_files.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY record_files::record_files(const record_files& o)
    : reader_(o.reader_), paths_(o.paths_), how_(o.how_), open_(o.open_), at_(o.at_), skipped_(o.skipped_) {}

GRADUS_BODY record_files& record_files::operator=(const record_files& o) {
  record_files copy(o);
  return *this = std::move(copy);
}

GRADUS_BODY std::string record_files::definition() const {
  if (paths_.size() == 1) return text('"', file_name_of(paths_[0]), '"');
  std::uint32_t crc = 0;
  for (const auto& p : paths_) {
    const std::string_view name = file_name_of(p);
    crc = extend(extend(crc, name), "/");
  }
  return text(paths_.size(), " files from \"", file_name_of(paths_[0]), "\" on, ", crc);
}

GRADUS_BODY void record_files::write(position_writer& to) const {
  for (const std::int64_t n : {at_.file, at_.byte, at_.record, at_.line, skipped_}) to.number(n);
}

GRADUS_BODY void record_files::read(position_reader& from) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max() / 2;
  place_in_files at;
  at.file = from.number(0, static_cast<std::int64_t>(paths_.size()), "the number of the file");
  at.byte = from.number(0, most, "the next record's byte");
  at.record = from.number(0, most, "the next record's number");
  at.line = from.number(0, most, "the next record's line");
  const auto skipped = from.number(0, most, "the bad records");
  if (!from.apply()) return;
  go_to(at);
  skipped_ = skipped;
}

GRADUS_BODY std::string_view record_files::as_chars(std::span<const std::byte> b) {
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}

GRADUS_BODY bool record_files::ready() {
  for (; at_.file < static_cast<std::int64_t>(paths_.size()); next_file()) {
    if (!in_) {
      in_ = open_(path());
      if (at_.byte != 0 && !in_->seek(static_cast<std::uint64_t>(at_.byte)))
        raise(status::failed_precondition, text("\"", path(), "\" ends in front of byte ", at_.byte,
                                                ", where the saved position is; it is another file, or was cut; "
                                                "restore_input = saved_input::ignored reads it from its beginning"));
    }
    if (!in_->ahead(1).empty()) return true;
  }
  return false;
}

GRADUS_BODY void record_files::advance(const found_record& found, std::int64_t records) {
  in_->pass(found.bytes);
  at_.byte += static_cast<std::int64_t>(found.bytes);
  at_.record += records, at_.line += found.lines;
}

GRADUS_BODY void record_files::pass_line() {
  for (bool ended = false; !ended;) {
    const auto bytes = as_chars(in_->ahead(1));
    const auto end = bytes.find('\n');
    ended = bytes.empty() || end != bytes.npos;
    const std::size_t n = end == bytes.npos ? bytes.size() : end + 1;
    in_->pass(n);
    at_.byte += static_cast<std::int64_t>(n);
  }
  ++at_.record, ++at_.line;
}

GRADUS_BODY void record_files::go_to(const place_in_files& at) {
  in_.reset();
  at_ = at;
}

GRADUS_BODY std::string record_files::place(const place_in_files& at) const {
  return text('"', path(), "\", record ", at.record + 1, " (line ", at.line + 1, ", byte ", at.byte, ")");
}

GRADUS_BODY bool line_in(std::string_view bytes, bool last, std::string_view& line, found_record& found) {
  const auto* end = static_cast<const char*>(std::memchr(bytes.data(), '\n', bytes.size()));
  if (end == nullptr && !last) return false;
  line = bytes.substr(0, end == nullptr ? bytes.size() : static_cast<std::size_t>(end - bytes.data()));
  found.bytes = line.size() + (end == nullptr ? 0 : 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

GRADUS_BODY record_files::record_files(std::string_view reader, file_list files, const file_reading& how,
                                       const any_file_system& fs)
    : reader_(reader), paths_(std::move(files).paths()), how_(how), open_([fs, how](const std::string& path) {
        return std::make_unique<file_stream>(path, how.compression, fs, std::size_t{1} << 18, how.limits);
      }) {
  if (paths_.empty()) raise(status::invalid_argument, text(reader_, ": expected at least one file"));
}

}  // namespace gradus::detail
