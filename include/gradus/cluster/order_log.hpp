// The log of orders of a parameter server (docs/formats/cluster_log.md). For each gradient it has the worker, the
// update that the gradient is in, and the values from which it was computed. A run whose updates depend on the order of
// arrival is repeated from it (replay.hpp).
//
//   gradus::detail::order_file to(fs, "logs/ps-0/orders", {.number = 0, .of_update = 1});
//   to.add({.order = 7, .read = 5, .worker = 1, .number = 3}), to.sync(false);      // 16 bytes
//
//   gradus::detail::order_log from(fs, "logs/ps-0/orders");
//   for (std::uint64_t order = from.first(); order <= from.last(); ++order) use(from.at(order, 0));
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <optional>
#include <string>

#include "../store/file.hpp"
#include "../store/file_bytes.hpp"
#include "protocol/message.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// This is the parameter server of a log, and the number of entries of an update.
struct order_log_of {
  std::uint32_t number = 0, of_update = 1;
};

// Writes the log: one process at a time, in the order of updates. A writer adds the last entries again after a restart;
// these are skipped.
class order_file {
public:
  // Opens or makes the file; what stands after the last whole update is removed. Raises data_loss for a head that was
  // damaged, failed_precondition for a file of another version or parameter server. After a power failure an update
  // that was not on the disk may be damaged and one after it whole: such updates are removed once the first of them is
  // added again, from the records of the parameter server's log.
  order_file(const any_file_system& fs, const std::string& path, const order_log_of& of);
  // Raises data_loss for an entry that is not of the next update. Does nothing behind a damaged update: keep() raises.
  void add(const order_entry& e);
  // Removes what was in the file after this update: after a power failure the parameter server may have come back
  // without those updates, and others may be made in their place. Raises data_loss, and removes nothing, if this update
  // or one before it is damaged and was not added again.
  void keep(std::uint64_t order);
  // Writes the entries to the operating system, or (`durable`) to the disk.
  void sync(bool durable);
  std::uint64_t last() const { return last_; }  // the last whole update; 0: there is none

private:
  any_file_system fs_;
  order_log_of of_;
  std::optional<appended_file> file_;
  std::uint64_t first_ = 0;  // the first update that was there
  std::uint64_t last_ = 0;
  std::string damage_;  // the sentence about the first damaged update that has whole ones behind it; empty: none
  std::uint64_t damaged_ = 0;
  std::size_t good_ = 0;                         // bytes before it
  std::uint32_t begun_ = 0;                      // number of entries of the update after the last one
  bool is_flushed_ = true, is_durable_ = false;  // what an earlier process has left may not be on the disk

  void cut(std::size_t bytes);
};

// Reads the log from the file, which may be larger than memory. A last update that is not whole was being written when
// its process ended, and is left out.
class order_log {
public:
  // Checks every entry's checksum. Raises the errors of order_file, and not_found if there is no file.
  order_log(const any_file_system& fs, const std::string& path);

  const std::string& path() const { return path_; }
  const order_log_of& of() const { return of_; }
  // Return the orders of the first and the last update; if there are none, last() < first().
  std::uint64_t first() const { return first_; }
  std::uint64_t last() const { return first_ + updates_ - 1; }
  // Returns entry i of an update that is in the log.
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
