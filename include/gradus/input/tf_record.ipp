// The bodies of tf_record.hpp.
#pragma once
#include "../base/body.hpp"
#include "tf_record.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY tf_record_dataset::tf_record_dataset(const tf_record_dataset& o)
    : composable(o), files_(o.files_), options_(o.options_), open_(o.open_), at_(o.at_), last_bytes_(o.last_bytes_) {}

GRADUS_BODY tf_record_dataset& tf_record_dataset::operator=(const tf_record_dataset& o) {
  tf_record_dataset copy(o);
  return *this = std::move(copy);
}

GRADUS_BODY bool tf_record_dataset::next_record(std::span<const std::byte>& payload) {
  if (stream_) {  // mostly the whole record is in the buffer
    const auto ready = stream_->ahead(0);
    if (is_header(ready)) {
      const std::uint64_t n = detail::get_fixed(ready.data(), 8);
      if (n <= options_.limits.record_bytes && n <= ready.size() - record_header_bytes &&
          ready.size() - record_header_bytes - n >= record_footer_bytes && take_front(ready, n, payload))
        return true;
    }
  }
  return next_slowly(payload);
}

GRADUS_BODY bool tf_record_dataset::pull(datum& out) {
  std::span<const std::byte> payload;
  if (!next_record(payload)) return false;
  if (!is_record(out)) out.conform(spec_);
  const auto n = static_cast<std::int64_t>(payload.size());
  const tensor_view to = out.about(0).dims[0] == n ? out[static_cast<std::size_t>(0)] : out.resize(std::size_t{0}, {n});
  copy(payload, to.mutable_data());
  return true;
}

GRADUS_BODY std::int64_t tf_record_dataset::pull(std::span<const tensor_view> out, std::int64_t, std::int64_t n) {
  if (!out.empty()) raise(status::failed_precondition, "records differ in size; read them with next(datum&)");
  std::int64_t done = 0;
  for (std::span<const std::byte> payload; done < n && next_record(payload);) ++done;
  return done;
}

GRADUS_BODY std::string tf_record_dataset::place() const {
  return place({.file = at_.file, .byte = at_.byte - last_bytes_, .record = std::max<std::int64_t>(at_.record, 1) - 1});
}

GRADUS_BODY void tf_record_dataset::define(std::string& to) const {
  std::uint32_t names = 0;  // only the file names are compared, not the directories
  for (const auto& f : *files_) names = extend(extend(names, file_name_of(f)), "/");
  to += text("tf_record(", files_->size(), files_->size() == 1 ? " file \"" : " files from \"",
             file_name_of(files_->front()), "\" on, ", names, ")");
}

GRADUS_BODY void tf_record_dataset::write(position_writer& to) const {
  to.number(at_.file);
  to.number(static_cast<std::int64_t>(at_.byte));
  to.number(at_.record);
  to.number(at_.skipped);
}

GRADUS_BODY void tf_record_dataset::read(position_reader& from) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  place_in_files p;
  p.file = from.number(0, static_cast<std::int64_t>(files_->size()), "the number of a file");
  p.byte = static_cast<std::uint64_t>(from.number(0, most, "a byte in a file"));
  p.record = from.number(0, most, "the number of a record");
  p.skipped = from.number(0, most, "the number of records skipped");
  if (from.apply()) go_to(p);
}

GRADUS_BODY void tf_record_dataset::go_to(const place_in_files& p) {
  stream_.reset();
  at_ = p;
}

GRADUS_BODY std::string tf_record_dataset::place(const place_in_files& p) const {
  return text('"', path(p.file), "\", record ", p.record + 1, " (byte ", p.byte, ")");
}

GRADUS_BODY bool tf_record_dataset::open(std::string& problem) {
  file_stream found = open_(path(at_.file), compression_type::none);
  const auto start = found.ahead(4096);
  compression_type how = options_.compression;
  if (how == compression_type::automatic)
    how = is_header(start) ? compression_type::none
          : is_gzip(start) ? compression_type::gzip
          : is_zlib(start) ? compression_type::zlib
                           : compression_type::none;
  if (start.empty()) how = compression_type::none;  // an empty file has no records, whatever its compression
  if ((how == compression_type::gzip && !is_gzip(start)) || (how == compression_type::zlib && !is_zlib(start))) {
    problem = text("tf_record \"", path(at_.file), "\": expected ", name_of(how),
                   " data, found something else at byte 0; let the compression be found out (automatic)");
    next_file();
    return false;
  }
  if (how != compression_type::none) found = open_(path(at_.file), how);
  if (at_.byte != 0 && !found.seek(at_.byte))
    raise(status::failed_precondition,
          text("\"", path(at_.file), "\" ends at byte ", found.offset(), ", in front of byte ", at_.byte,
               ", where the saved position is; it is another file, or was cut; restore_input = saved_input::ignored "
               "reads it from its beginning"));
  stream_ = std::move(found);
  return true;
}

GRADUS_BODY void tf_record_dataset::copy(std::span<const std::byte> from, std::byte* to) {
  constexpr std::size_t piece = 1024;
  for (; from.size() > piece; from = from.subspan(piece), to += piece) std::memcpy(to, from.data(), piece);
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

GRADUS_BODY bool tf_record_dataset::is_record(const datum& d) {
  if (d.size() != 1) return false;
  const component& c = d.about(0);
  return c.type == uint8 && c.dims.rank == 1 && c.name.size() == 6 && std::memcmp(c.name.data(), "record", 6) == 0;
}

GRADUS_BODY bool tf_record_dataset::is_header(std::span<const std::byte> start) {
  return start.size() >= record_header_bytes && mask(crc32c(start.first(8))) == detail::get_fixed(start.data() + 8, 4);
}

GRADUS_BODY bool tf_record_dataset::take_front(std::span<const std::byte> bytes, std::uint64_t n,
                                               std::span<const std::byte>& payload) {
  const auto size = static_cast<std::size_t>(n);
  payload = bytes.subspan(record_header_bytes, size);
  if (mask(crc32c(payload)) != detail::get_fixed(payload.data() + size, 4)) return false;
  advance(size + record_overhead_bytes);
  return true;
}

GRADUS_BODY void tf_record_dataset::advance(std::size_t bytes) {
  stream_->pass(bytes);
  at_.byte += bytes, ++at_.record;
  last_bytes_ = bytes;
}

[[gnu::noinline]] GRADUS_BODY bool tf_record_dataset::next_slowly(std::span<const std::byte>& payload) {
  while (at_.file < static_cast<std::int64_t>(files_->size())) {
    std::string problem;
    if (step(payload, problem)) return true;
    if (problem.empty()) continue;  // the end of a file
    if (!options_.ignore_errors) raise(too_long_ ? status::resource_exhausted : status::data_loss, problem);
    ++at_.skipped;
  }
  return false;
}

GRADUS_BODY bool tf_record_dataset::step(std::span<const std::byte>& payload, std::string& problem) {
  too_long_ = false;
  const auto say = [&](std::string_view what) { problem = text("tf_record ", place(at_), ": ", what); };
  constexpr std::string_view truncated = "truncated record: the file ends inside it; those before it are good";
  if (!stream_ && !open(problem)) return false;
  try {
    const auto header = stream_->ahead(record_header_bytes);
    if (header.size() < record_header_bytes) {
      if (!header.empty()) say(truncated);
      next_file();
      return false;
    }
    if (!is_header(header)) {
      say("corrupted record: the checksum of its length is wrong, so nothing after it can be read; is this a "
          "TFRecord file?");
      next_file();
      return false;
    }
    const std::uint64_t n = detail::get_fixed(header.data(), 8);
    if (n > std::min<std::uint64_t>(options_.limits.record_bytes, PTRDIFF_MAX - record_overhead_bytes)) {
      say(text("found a record of ", n, " bytes, the limit is ", options_.limits.record_bytes,
               "; raise reader_limits::record_bytes if the file is to be trusted"));
      too_long_ = true;
      pass_over(n);
      return false;
    }
    const auto size = static_cast<std::size_t>(n);
    const auto whole = stream_->ahead(size + record_overhead_bytes);
    if (whole.size() < size + record_overhead_bytes) {
      say(truncated);
      next_file();
      return false;
    }
    if (take_front(whole, n, payload)) return true;
    say("corrupted record: the checksum of its payload is wrong; the next record may be good");
    advance(size + record_overhead_bytes);
    return false;
  } catch (const error& e) {
    if (stream_->too_large()) {  // an error in any case: what is left of the file may be good
      const std::string where = text("tf_record ", place(at_), ": ", e.what());
      next_file();
      raise(e.kind(), where);
    }
    if (stream_->device_failed() ||
        e.kind() != status::data_loss) {  // nothing is lost: the file is opened again, at the same place
      stream_.reset();
      throw;
    }
    say(e.what());  // compressed data that are damaged
    next_file();
    return false;
  }
}

GRADUS_BODY void tf_record_dataset::pass_over(std::uint64_t n) {
  std::uint64_t end = 0;
  const bool more = !__builtin_add_overflow(at_.byte, n, &end) &&
                    !__builtin_add_overflow(end, record_overhead_bytes, &end) && stream_->seek(end);
  if (!more) return next_file();
  at_.byte = end, ++at_.record;
}

GRADUS_BODY tf_record_dataset::tf_record_dataset(file_list files, const tf_record_options& options,
                                                 const any_file_system& fs)
    : files_(std::make_shared<const std::vector<std::string>>(std::move(files).paths())), options_(options) {
  if (files_->empty()) raise(status::invalid_argument, "tf_record: expected at least one file");
  open_ = [fs, buffer = options.buffer_bytes, limits = options.limits](const std::string& path, compression_type how) {
    return file_stream(path, how, fs, buffer, limits);
  };
}

GRADUS_BODY tf_record_dataset tf_record(file_list files, const tf_record_options& options, const any_file_system& fs) {
  return tf_record_dataset(std::move(files), options, fs);
}

}  // namespace gradus
