// The log of orders of a parameter server (docs/formats/cluster_log.md): whose which gradient is in which update, and
// from which values it was computed. From it a run that goes by arrival is repeated (replay.hpp).
//
//   gradus::detail::order_file to(fs, "logs/ps-0/orders", {.number = 0, .of_update = 1});
//   to.add({.order = 7, .read = 5, .worker = 1, .number = 3}), to.sync(false);      // 16 bytes
//
//   gradus::detail::order_log from(fs, "logs/ps-0/orders");
//   for (std::uint64_t order = from.first(); order <= from.last(); ++order) use(from.at(order, 0));
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "../store/file.hpp"
#include "../store/file_bytes.hpp"
#include "protocol/message.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Of which parameter server it is, and how many entries an update has.
struct order_log_of {
  std::uint32_t number = 0, of_update = 1;
};

// Written by one process at a time, in the order of updates. Whoever writes says the last entries again after a
// restart; they are passed over.
class order_file {
public:
  // What stands behind the last whole update goes away. Errors: data_loss for a file that was damaged,
  // failed_precondition for one of another version or parameter server.
  order_file(const any_file_system& fs, const std::string& path, const order_log_of& of);
  // Error: data_loss for an entry that is not of the next update.
  void add(const order_entry& e);
  // What was there behind this update goes away: where the power failed, the parameter server may have come back
  // without it, and others may be made in its place.
  void keep(std::uint64_t order);
  // To the operating system, or (`durable`) to the disk.
  void sync(bool durable);
  std::uint64_t last() const { return last_; }  // the last whole update; 0: there is none

private:
  any_file_system fs_;
  order_log_of of_;
  std::optional<appended_file> file_;
  std::uint64_t first_ = 0;  // of what was there
  std::uint64_t last_ = 0;
  std::uint32_t begun_ = 0;  // entries of the update behind the last one
  bool is_synced_ = true;
};

// Read where it lies: the file may be larger than memory. A last update that is not whole was being written when its
// process ended, and is not there.
class order_log {
public:
  // Every entry's checksum is looked at. Errors as order_file's, and not_found where there is no file.
  order_log(const any_file_system& fs, const std::string& path);

  const std::string& path() const { return path_; }
  const order_log_of& of() const { return of_; }
  // Orders of the updates that are there; none: last() < first().
  std::uint64_t first() const { return first_; }
  std::uint64_t last() const { return first_ + updates_ - 1; }
  // Entry i of an update that is there.
  order_entry at(std::uint64_t order, std::uint32_t i) const;
  [[noreturn]] void refuse(std::uint64_t order, std::uint32_t i, const std::string& what) const;

private:
  std::string path_;
  opened_bytes file_;
  order_log_of of_;
  std::uint64_t first_ = 1, updates_ = 0;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "order_log.ipp"
#endif
