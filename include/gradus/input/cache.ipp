// The bodies of cache.hpp.
#pragma once
#include "../base/body.hpp"
#include "cache.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY cache_file::cache_file(std::string path, const components& spec) : path_(std::move(path)), spec_(spec) {
  header_ = framed("gradus cache 2: " + to_text(spec));
  old_header_ = framed("gradus cache 1: " + to_text(spec));
}

GRADUS_BODY bool cache_file::whole(std::string& why) const {
  any_file_system::handle h{};
  std::uint64_t size = 0;
  const int e = uninterrupted([&] { return any_file_system{}.open_read(path_, h, size); });
  if (e == ENOENT) return false;
  if (e != 0) raise({e, "open", path_});
  const any_file_system fs;
  const closing at_end(fs, h);
  const auto begin = bytes_at(h, 0, std::min<std::uint64_t>(size, header_.size()));
  const auto starts = [&](const std::vector<std::byte>& header) {
    return std::equal(begin.begin(), begin.end(), header.begin());
  };
  if (!starts(header_)) {
    if (!starts(old_header_))
      raise(status::failed_precondition, text("\"", path_, "\" is not the cache of this dataset (", to_text(spec_),
                                              "); remove it, or give another name"));
    why = "gradus 0.5 wrote it, which did not note whether it is whole";
    return false;
  }
  if (size >= header_.size() + end_bytes) {
    const auto end = bytes_at(h, size - end_bytes, end_bytes);
    if (end.size() == end_bytes && end == end_record(get_fixed(end.data() + record_header_bytes + 1, 8))) return true;
  }
  why = text("its ", size, " bytes have no end record, so it was cut");
  return false;
}

GRADUS_BODY void cache_file::begin_writing() {
  drop();
  in_.reset();  // the file that this one will replace
  if (auto p = out_.create(any_file_system{}, path_)) raise(p);
  pending_ = header_;
}

GRADUS_BODY void cache_file::append(const datum& d) {
  append_record(pending_, [&](std::vector<std::byte>& to) {
    to.push_back(element);
    position_writer writer(to);
    d.write(writer);
  });
  if (pending_.size() >= enough) flush();
}

GRADUS_BODY void cache_file::finish(std::int64_t count) {
  const auto end = end_record(static_cast<std::uint64_t>(count));
  pending_.insert(pending_.end(), end.begin(), end.end());
  flush();
  if (auto p = out_.sync(any_file_system{})) raise(p);
  if (auto p = out_.reveal(any_file_system{})) raise(p);
  any_file_system{}.sync_directory(directory_of(path_));
}

GRADUS_BODY void cache_file::drop() {
  out_.discard(any_file_system{});
  pending_.clear();
}

GRADUS_BODY bool cache_file::read(std::int64_t at, datum& to) {
  if (!in_ || at_ != at) {
    in_.emplace(file_source<any_file_system>(any_file_system{}, path_), limits());
    ended_ = false;
    if (in_->read(bytes_) != record_status::record || framed(bytes_) != header_)
      raise(status::failed_precondition, text("\"", path_, "\" is not the cache of this dataset (", to_text(spec_),
                                              "); remove it, or give another name"));
    for (at_ = 0; at_ < at; ++at_)
      if (!next()) raise(status::data_loss, text("\"", path_, "\": expected more than ", at, " elements, found ", at_));
  }
  if (!next()) return false;
  ++at_;
  position_reader from(std::span<const std::byte>(bytes_).subspan(1), true);
  to.read(from, spec_);
  return true;
}

// Returns limits for records: the file may be another process's, or damaged. Elements of varying size may have any.
GRADUS_BODY reader_limits cache_file::limits() const {
  reader_limits all = reader_limits::none();
  if (!has_fixed_size(spec_)) return all;
  all.record_bytes = std::max<std::uint64_t>(4096, header_.size());  // beside the values: their names, types, extents
  for (const component& c : spec_) all.record_bytes += size_bytes(c) + c.name.size() + 512;
  return all;
}

GRADUS_BODY std::vector<std::byte> cache_file::framed(std::span<const std::byte> payload) {
  std::vector<std::byte> out;
  append_record(out, payload);
  return out;
}

GRADUS_BODY std::vector<std::byte> cache_file::end_record(std::uint64_t count) {
  std::array<std::byte, 9> payload{last};
  put_fixed(payload.data() + 1, count, 8);
  return framed(payload);
}

GRADUS_BODY std::vector<std::byte> cache_file::bytes_at(any_file_system::handle h, std::uint64_t at,
                                                        std::uint64_t n) const {
  std::vector<std::byte> out(static_cast<std::size_t>(n));
  if (const int e = any_file_system{}.seek(h, at); e != 0) raise({e, "seek in", path_});
  for (std::size_t done = 0; done < out.size();) {
    std::size_t moved = 0;
    const int e = uninterrupted([&] { return any_file_system{}.read(h, std::span(out).subspan(done), moved); });
    if (e != 0) raise({e, "read", path_});
    if (moved == 0) out.resize(done);
    done += moved;
  }
  return out;
}

GRADUS_BODY void cache_file::flush() {
  if (auto p = out_.write(any_file_system{}, pending_)) raise(p);
  pending_.clear();
}

GRADUS_BODY bool cache_file::next() {
  if (ended_) return false;
  const bool whole = in_->read(bytes_) == record_status::record;
  if (whole && !bytes_.empty() && bytes_[0] == element) return true;
  if (whole && framed(bytes_) == end_record(static_cast<std::uint64_t>(at_))) return ended_ = true, false;
  raise(status::data_loss, text("corrupted record at byte ", in_->offset(), " of the cache \"", path_, "\", behind ",
                                at_, " elements; remove the file, and it is written again"));
}

}  // namespace gradus::detail
