// The bodies of node_log.hpp.
#pragma once
#include "../base/body.hpp"
#include "node_log.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "../store/crc32c.hpp"
#include "../store/file.hpp"
#include "../store/file_bytes.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// The bytes of a log's files (docs/formats/cluster_log.md).
namespace log_bytes {

inline constexpr char segment_magic[] = "GRDL", record_magic[] = "GRLR", snapshot_magic[] = "GRLS";
inline constexpr std::uint16_t version = 2;
inline constexpr std::size_t segment_head = 24, record_head = 40, snapshot_head = 32;
// A piece of a record that has at least this length is written without a copy to the buffer.
inline constexpr std::size_t written_alone = gathered_bytes::left_in_place;

template <class Number>
void put(std::byte* at, Number n) {
  std::memcpy(at, &n, sizeof n);
}
template <class Number>
Number get(std::span<const std::byte> from, std::size_t at) {
  Number n;
  std::memcpy(&n, from.data() + at, sizeof n);
  return n;
}
// A head's last four bytes are the checksum of those before.
inline void seal(std::span<std::byte> head) {
  put(head.data() + head.size() - 4, crc32c(std::span<const std::byte>(head.first(head.size() - 4))));
}
inline bool is_sealed(std::span<const std::byte> head, const char* magic) {
  return std::memcmp(head.data(), magic, 4) == 0 &&
         get<std::uint32_t>(head, head.size() - 4) == crc32c(head.first(head.size() - 4));
}

struct summed {
  std::uint64_t bytes = 0;
  std::uint32_t checksum = 0;
};
inline summed sum_of(std::span<const std::span<const std::byte>> pieces) {
  summed s;
  for (const auto p : pieces) s.bytes += p.size(), s.checksum = extend(s.checksum, p);
  return s;
}

struct record {
  std::uint64_t number = 0, acknowledged = 0, bytes = 0;
  std::uint32_t checksum = 0;
};
// Reads the head at the beginning of `rest`; returns false if there is none.
inline bool read_head(std::span<const std::byte> rest, record& r) {
  if (rest.size() < record_head || !is_sealed(rest.first(record_head), record_magic)) return false;
  r.checksum = get<std::uint32_t>(rest, 4), r.bytes = get<std::uint64_t>(rest, 8);
  r.number = get<std::uint64_t>(rest, 16), r.acknowledged = get<std::uint64_t>(rest, 24);
  return true;
}
// Returns whether a record somewhere in `rest` was written after record n had been acknowledged.
inline bool shows_acknowledged(std::span<const std::byte> rest, std::uint64_t n) {
  record r;
  while (rest.size() >= record_head) {
    const auto* at = static_cast<const std::byte*>(std::memchr(rest.data(), record_magic[0], rest.size()));
    if (at == nullptr) return false;
    rest = rest.subspan(static_cast<std::size_t>(at - rest.data()));
    if (read_head(rest, r) && r.number > n && r.acknowledged >= n) return true;
    rest = rest.subspan(1);
  }
  return false;
}

// Returns the problem that a machine has with its bytes; empty if it has taken them.
template <class Read>
std::string problem_in(Read read) {
  try {
    return read();
  } catch (const error& e) {
    return e.what();
  }
}

}  // namespace log_bytes

GRADUS_BODY node_log::node_log(const any_file_system& fs, std::string directory, node_log_options o)
    : fs_(fs), directory_(std::move(directory)), o_(o), least_(o.least_bytes) {
  make_directories(fs_, directory_);
  lock_.emplace(fs_, directory_);
}
GRADUS_BODY node_log::~node_log() noexcept(false) { close_segment(); }

GRADUS_BODY std::string node_log::path_of(std::string_view kind, std::uint64_t number) const {
  return join_path(directory_, text(kind, number));
}

GRADUS_BODY void node_log::refuse(const std::string& what) const {
  raise(status::data_loss,
        text("the log of a cluster's node in \"", directory_, "\" is damaged: ", what,
             "; restore the folder, or remove the logs of all nodes to go on from the last checkpoint"));
}

// ---- reading the folder

GRADUS_BODY node_log::found node_log::look() const {
  std::vector<std::string> names;
  if (const int e = uninterrupted([&] { return fs_.list(directory_, names); }); e != 0) raise({e, "list", directory_});
  clear_temporaries(fs_, directory_, names, [](std::string_view, const std::string&) { return true; });
  found f;
  const auto number_of = [](std::string_view name, std::string_view kind, std::vector<std::uint64_t>& all) {
    if (!name.starts_with(kind)) return;
    std::uint64_t n = 0;
    const char* const end = name.data() + name.size();
    if (const auto r = std::from_chars(name.data() + kind.size(), end, n); r.ec == std::errc{} && r.ptr == end)
      all.push_back(n);
  };
  for (const std::string& name : names) {
    number_of(name, "snapshot-", f.snapshots);
    number_of(name, "log-", f.segments);
  }
  std::sort(f.snapshots.rbegin(), f.snapshots.rend());
  std::sort(f.segments.begin(), f.segments.end());
  return f;
}

GRADUS_BODY bool node_log::load_snapshot(std::uint64_t number, const std::function<void(bytes_in&)>& load,
                                         std::string& problem) {
  using namespace log_bytes;
  const std::string path = path_of("snapshot-", number);
  opened_bytes file(fs_);
  if (const auto p = file.open(path)) raise(p);
  const auto all = file.bytes();
  if (all.size() < snapshot_head || !is_sealed(all.first(snapshot_head), snapshot_magic)) {
    problem = text('"', path, "\" has no whole head at byte 0");
  } else if (const auto v = get<std::uint16_t>(all, 4); v != version) {
    raise(status::failed_precondition, text('"', path, "\" is of version ", v, " of the format, and this build reads ",
                                            version, "; use the build that wrote it"));
  } else if (get<std::uint64_t>(all, 16) != number || get<std::uint64_t>(all, 8) != all.size() - snapshot_head) {
    problem = text('"', path, "\" has ", all.size() - snapshot_head, " bytes behind its head at byte 0, which says ",
                   get<std::uint64_t>(all, 8), ", as the state after record ", get<std::uint64_t>(all, 16));
  } else if (crc32c(all.subspan(snapshot_head)) != get<std::uint32_t>(all, 24)) {
    problem = text('"', path, "\" fails its checksum from byte ", snapshot_head, " on");
  } else {
    const std::string problem_of_it = problem_in([&] {
      bytes_in in(all.subspan(snapshot_head), "snapshot of a node");
      load(in);
      in.end();
      return "";
    });
    if (!problem_of_it.empty()) refuse(text('"', path, "\", byte ", snapshot_head, ": ", problem_of_it));
    least_ = std::max<std::uint64_t>(o_.least_bytes, o_.times_state * all.size());
    return true;
  }
  return false;
}

// Replays the records of a segment from number `from` on, up to `end`, and sets last_ to the last one that is there.
// `problem` becomes the reason why the one after it is not there.
GRADUS_BODY void node_log::read_segment(std::uint64_t first, std::uint64_t end, std::uint64_t from,
                                        std::string& problem,
                                        const std::function<bool(std::span<const std::byte>)>& replay) {
  using namespace log_bytes;
  const std::string path = path_of("log-", first);
  opened_bytes file(fs_);
  if (const auto p = file.open(path)) raise(p);
  const auto all = file.bytes();
  std::uint64_t next = first;
  std::size_t at = 0;
  std::string wrong;
  if (all.size() < segment_head || !is_sealed(all.first(segment_head), segment_magic) ||
      get<std::uint64_t>(all, 8) != first) {
    wrong = "expected its head";
  } else if (const auto v = get<std::uint16_t>(all, 4); v != version) {
    raise(status::failed_precondition, text('"', path, "\" is of version ", v, " of the format, and this build reads ",
                                            version, "; use the build that wrote it"));
  } else {
    at = segment_head;
  }
  while (wrong.empty() && next <= end && at < all.size()) {
    const auto rest = all.subspan(at);
    record r;
    if (!read_head(rest, r)) {
      wrong = text("expected record ", next);
    } else if (r.number != next) {
      wrong = text("expected record ", next, ", found ", r.number);
    } else if (r.bytes > rest.size() - record_head) {
      wrong = text("record ", next, " has ", r.bytes, " bytes, and ", rest.size() - record_head, " are left");
    } else if (const auto data = rest.subspan(record_head, static_cast<std::size_t>(r.bytes));
               crc32c(data) != r.checksum) {
      wrong = text("record ", next, " fails its checksum");
    } else {
      if (next >= from) {
        const std::string problem_of_it = problem_in([&] { return replay(data) ? "" : "nobody knows it"; });
        if (!problem_of_it.empty()) refuse(text('"', path, "\", byte ", at, ": record ", next, ": ", problem_of_it));
        last_ = next;
      }
      ++next, at += record_head + data.size();
    }
  }
  behind_ += at;
  problem = text('"', path, "\" ends behind record ", next - 1);
  if (wrong.empty() || next > end) return;
  problem = text('"', path, "\", byte ", at, ": ", wrong);
  if (shows_acknowledged(all.subspan(at), next)) refuse(problem + ", which records behind it show to have been there");
}

// Records that were read are relied on from now on, so they have to survive as written ones do.
GRADUS_BODY void node_log::make_certain(const std::string& path) const {
  any_file_system::handle h{};
  int e = uninterrupted([&] { return fs_.open_append(path, h); });
  if (e != 0) raise({e, "open", path});
  const closing close_at_end(fs_, h);
  e = uninterrupted([&] { return fs_.sync(h); });
  if (e != 0) raise({e, "sync", path});
}

GRADUS_BODY bool node_log::recover(const std::function<void(bytes_in&)>& load,
                                   const std::function<bool(std::span<const std::byte>)>& replay) {
  const found f = look();
  std::string problem = "no snapshot is there", damaged;
  std::uint64_t known = 0;  // records were there up to this one
  if (!f.snapshots.empty()) known = f.snapshots.front();
  if (!f.segments.empty() && f.segments.back() != 0) known = std::max(known, f.segments.back() - 1);
  for (const std::uint64_t n : f.snapshots) {
    const bool is_whole = load_snapshot(n, load, problem);
    if (is_whole) {
      last_ = n;
      if (o_.durable) make_certain(path_of("snapshot-", n));
      break;
    }
    if (damaged.empty()) damaged = problem;
  }
  if (!damaged.empty()) problem = damaged;
  for (std::size_t i = 0; i < f.segments.size(); ++i) {
    const std::uint64_t first = f.segments[i];
    const std::uint64_t end = i + 1 < f.segments.size() ? f.segments[i + 1] - 1 : UINT64_MAX;
    if (first <= last_) continue;  // it ends at or before the snapshot, and its file may be another segment's already
    if (first > last_ + 1) break;  // the records between are missing
    read_segment(first, end, last_ + 1, problem, replay);
    if (o_.durable) make_certain(path_of("log-", first));
    if (last_ < end) break;
  }
  if (last_ < known) refuse(text("record ", last_ + 1, " is not there, and ", known, " was: ", problem));
  // The directory entry of the folder may be new too: a process may have ended between making it and its sync.
  std::string above = directory_;
  for (bool again = o_.durable; again; above = directory_of(above)) {
    const int e = uninterrupted([&] { return fs_.sync_directory(above); });
    // A directory that may be entered and not read cannot be synced. Another user has made it, before this log.
    if (e == EACCES && above != directory_) break;
    if (e != 0) raise({e, above == directory_ ? "sync the directory" : "sync a directory above", directory_});
    again = directory_of(above) != above;
  }
  synced_ = last_;
  return last_ != 0;
}

// ---- writing

GRADUS_BODY void node_log::check(int e, const char* operation, const std::string& path) {
  if (e == 0) return;
  has_failed_ = true;
  raise(status_of_errno(e), text(describe(file_problem{e, operation, path}), "; this ends the node: its log in \"",
                                 directory_, "\" holds all that was acknowledged"));
}
GRADUS_BODY void node_log::must_be_whole() const {
  if (has_failed_)
    raise(status::failed_precondition,
          text("the log in \"", directory_,
               "\" could not be written before; open it again once its disk can be written"));
}

// Begins the segment of the next record, in the file of the last segment if this process has one.
GRADUS_BODY void node_log::begin_segment() {
  const std::string before = std::exchange(path_, path_of("log-", last_ + 1));
  if (is_open_ && fs_.rewinds()) {  // first the name: under the old one there must only be the old segment's records
    check(uninterrupted([&] { return fs_.rename(before, path_); }), "rename", before);
    check(uninterrupted([&] { return fs_.rewind(handle_); }), "rewind", path_);
  } else {
    close_segment();
    create_segment();
  }
  is_named_ = false;
  std::byte head[log_bytes::segment_head] = {};
  std::memcpy(head, log_bytes::segment_magic, 4);
  log_bytes::put(head + 4, log_bytes::version);
  log_bytes::put(head + 8, last_ + 1);
  log_bytes::seal(head);
  buffer_.insert(buffer_.end(), std::begin(head), std::end(head));
}
GRADUS_BODY void node_log::create_segment() {
  int e = uninterrupted([&] { return fs_.create(path_, handle_); });
  if (e == EEXIST) {  // the process that made it ended before a record was in it
    check(uninterrupted([&] { return fs_.remove(path_); }), "remove", path_);
    e = uninterrupted([&] { return fs_.create(path_, handle_); });
  }
  check(e, "create", path_);
  is_open_ = true;
}
GRADUS_BODY void node_log::close_segment() {
  if (std::exchange(is_open_, false)) fs_.close(handle_);
}

GRADUS_BODY void node_log::put(std::span<const std::byte> bytes) {
  std::size_t written = 0;
  check(write_all(fs_, handle_, bytes, written), "write", path_);
}
GRADUS_BODY void node_log::write_buffer() {
  if (buffer_.empty()) return;
  put(buffer_);
  buffer_.clear();
}

GRADUS_BODY std::uint64_t node_log::append(std::span<const std::span<const std::byte>> pieces) {
  must_be_whole();
  if (!is_open_) begin_segment();
  std::byte head[log_bytes::record_head] = {};
  std::memcpy(head, log_bytes::record_magic, 4);
  const log_bytes::summed all = log_bytes::sum_of(pieces);
  log_bytes::put(head + 4, all.checksum);
  log_bytes::put(head + 8, all.bytes);
  log_bytes::put(head + 16, last_ + 1);
  log_bytes::put(head + 24, synced_);
  log_bytes::seal(head);
  buffer_.insert(buffer_.end(), std::begin(head), std::end(head));
  for (const auto p : pieces)
    if (p.size() >= log_bytes::written_alone) {
      write_buffer();
      put(p);
    } else {
      buffer_.insert(buffer_.end(), p.begin(), p.end());
    }
  behind_ += sizeof head + all.bytes;
  return ++last_;
}

GRADUS_BODY void node_log::sync() {
  if (synced_ == last_) return;
  must_be_whole();
  write_buffer();
  if (o_.durable) {
    check(uninterrupted([&] { return fs_.sync(handle_); }), "sync", path_);
    if (!std::exchange(is_named_, true))
      check(uninterrupted([&] { return fs_.sync_directory(directory_); }), "sync the directory", directory_);
  }
  synced_ = last_;
}

GRADUS_BODY void node_log::snapshot(const std::function<void(bytes_out)>& save) {
  must_be_whole();
  using namespace log_bytes;
  write_buffer();
  state_.clear();
  save(bytes_out(state_));
  const auto pieces = state_.pieces();
  const summed all = sum_of(pieces);
  std::byte head[snapshot_head] = {};
  std::memcpy(head, snapshot_magic, 4);
  log_bytes::put(head + 4, version);
  log_bytes::put(head + 8, all.bytes);
  log_bytes::put(head + 16, last_);
  log_bytes::put(head + 24, all.checksum);
  seal(head);

  const std::string path = path_of("snapshot-", last_);
  temporary_file to;
  auto problem = to.create(fs_, path);
  if (!problem) problem = to.write(fs_, head);
  for (const auto p : pieces)
    if (!problem) problem = to.write(fs_, p);
  if (!problem && o_.durable) problem = to.sync(fs_);
  if (!problem) problem = to.reveal(fs_);
  if (problem) to.discard(fs_);
  check(problem.error, problem.operation, problem.path);
  if (o_.durable)
    check(uninterrupted([&] { return fs_.sync_directory(directory_); }), "sync the directory", directory_);
  // From here on the earlier records are not needed, and no record is acknowledged that was not before.
  synced_ = last_;
  begin_segment();
  const found f = look();
  // A file that cannot be removed does no harm, and is removed after the next snapshot.
  for (const std::uint64_t n : f.segments)
    if (n <= last_) uninterrupted([&] { return fs_.remove(path_of("log-", n)); });
  for (const std::uint64_t n : f.snapshots)
    if (n < last_) uninterrupted([&] { return fs_.remove(path_of("snapshot-", n)); });
  behind_ = 0;
  least_ = std::max<std::uint64_t>(o_.least_bytes, o_.times_state * (snapshot_head + all.bytes));
}

}  // namespace gradus::detail
