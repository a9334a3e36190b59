// The log of one node of a cluster, in a folder. It holds the records that its machines have written
// (protocol_outside::write), so that a process that was killed goes on with all that it has ever acknowledged.
//
//   gradus::detail::node_log log(fs, "logs/ps-0", {.durable = false});
//   log.recover([&](bytes_in& in) { shard.load(in); }, [&](auto record) { return shard.replay(record); });
//   const std::uint64_t number = log.append(record);      // 1, 2, 3, ... over all processes that ever had the folder
//   log.sync(), shard.synced(log.synced_up_to());         // all records so far survive; dependent messages are sent
//   if (log.wants_snapshot()) log.snapshot([&](bytes_out out) { shard.save(out); });
//
// docs/formats/cluster_log.md describes the files of the folder and their bytes. Records are in segments, each named by
// its first record, and a process that opens the folder begins a new segment. So nothing is ever written behind a
// record that was torn when a process ended, and no file has to be truncated. At any instant the folder holds a whole
// snapshot and the records after it; if it does not, that is an error, so no older state is taken for the newest.
//
// After a snapshot the file of the segment, whose records are not needed any more, gets the name of the next segment
// and is written again from its beginning: the system has its pages, and the disk its blocks. Behind the new records
// there are records that this process has written before, so their numbers are smaller, and no reader goes on with one.
// The file of another process is never used again, since that may have written records with the same numbers.
//
// A record that is written survives the end of its process; one that is synced (`durable`) also survives that of the
// machine. One sync is for all records before it, so a driver handles the messages that have come and syncs once. An
// error in writing is final: nothing is acknowledged after it.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../store/any_file_system.hpp"
#include "../store/directory_lock.hpp"
#include "protocol/bytes.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

struct node_log_options {
  bool durable = false;  // what is acknowledged survives a power failure, not only the end of the process
  // A snapshot is due when the log after the last snapshot has `least_bytes`, and is `times_state` times as long as
  // that snapshot. A record that holds a gradient is as long as the variables: with a smaller factor more bytes of
  // state would be written than of records.
  std::uint64_t least_bytes = std::uint64_t{1} << 20;
  std::uint64_t times_state = 8;
};

class node_log {
public:
  // Makes the folder, and locks it until this object is destroyed. Raises failed_precondition if another process has
  // locked it.
  node_log(const any_file_system& fs, std::string directory, node_log_options o = {});
  node_log(const node_log&) = delete;
  node_log& operator=(const node_log&) = delete;
  // Records that were not synced may be lost.
  ~node_log() noexcept(false);  // a file system of a test may throw (testing/faulty_files.hpp)

  // To be called once, before anything is appended: passes the newest snapshot, if there is one, to `load`, and then
  // the records after it to `replay`. `replay` returns false for an unknown record, which is an error. Returns true if
  // the folder held anything. Raises data_loss for a folder that was damaged, with the file, the byte and the remedy.
  bool recover(const std::function<void(bytes_in&)>& load,
               const std::function<bool(std::span<const std::byte>)>& replay);

  // Appends a record, whose bytes come in pieces, and returns its number.
  std::uint64_t append(std::span<const std::span<const std::byte>> pieces);
  std::uint64_t append(std::span<const std::byte> record) { return append({&record, 1}); }
  // Returns the number of the last record.
  std::uint64_t last() const { return last_; }
  // Once it has returned, all records that were appended survive.
  void sync();
  std::uint64_t synced_up_to() const { return synced_; }

  bool wants_snapshot() const { return behind_ > least_; }
  // Writes what `save` writes, which is the state after all records so far; then these records are not needed any more.
  void snapshot(const std::function<void(bytes_out)>& save);

  const std::string& directory() const { return directory_; }

private:
  any_file_system fs_;
  std::string directory_;
  node_log_options o_;
  std::optional<held_directory> lock_;
  std::uint64_t last_ = 0, synced_ = 0;
  std::uint64_t behind_ = 0, least_ = 0;  // bytes of the log after the snapshot; those at which the next is due
  any_file_system::handle handle_{};
  bool is_open_ = false, has_failed_ = false;
  bool is_named_ = true;  // the segment's directory entry survives
  std::string path_;      // of the segment
  std::vector<std::byte> buffer_;
  gathered_bytes state_;

  struct found {
    std::vector<std::uint64_t> snapshots, segments;  // by number, descending and ascending
  };
  std::string path_of(std::string_view kind, std::uint64_t number) const;
  found look() const;
  bool load_snapshot(std::uint64_t number, const std::function<void(bytes_in&)>& load, std::string& problem);
  void read_segment(std::uint64_t first, std::uint64_t end, std::uint64_t from, std::string& problem,
                    const std::function<bool(std::span<const std::byte>)>& replay);
  void make_certain(const std::string& path) const;
  void begin_segment();
  void create_segment();
  void close_segment();
  void write_buffer();
  void put(std::span<const std::byte> bytes);
  void check(int e, const char* operation, const std::string& path);
  void must_be_whole() const;
  [[noreturn]] void refuse(const std::string& what) const;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "node_log.ipp"
#endif
