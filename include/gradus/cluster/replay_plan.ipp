// The bodies of replay_plan.hpp.
#pragma once
#include "../base/body.hpp"
#include "replay_plan.hpp"

#include <algorithm>
#include <charconv>

#include "server_log.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Returns a number among the settings of a cluster; 0 if there is none.
inline std::uint32_t number_in(const cluster_fingerprint& of, std::string_view name) {
  std::uint32_t n = 0;
  for (const auto& [setting, value] : of.settings)
    if (setting == name) std::from_chars(value.data(), value.data() + value.size(), n);
  return n;
}

GRADUS_BODY replay_plan::replay_plan(const any_file_system& fs, const std::string& directory) : directory_(directory) {
  const auto folder = [&](std::uint32_t shard) { return join_path(directory, text("ps-", shard)); };
  const auto of = [&](std::uint32_t shard) {
    std::vector<std::byte> bytes;
    const std::string path = join_path(folder(shard), "of");
    if (const auto p = try_read(fs, path, most_of_fingerprint, bytes); p && p.error == ENOENT)
      raise(status::not_found,
            text("expected the log of ps ", shard, " in \"", folder(shard), "\", and there is no file \"", path,
                 "\"; give the folder that recovery::log had, with the logs of all parameter servers"));
    else if (p)
      raise(p);
    return cluster_fingerprint_from(bytes);
  };
  of_.push_back(of(0));
  constexpr std::uint32_t most_shards = 64, most_workers = 4096;
  shape_ = {number_in(of_[0], "cluster: number of ps"), number_in(of_[0], "cluster: number of workers")};
  if (shape_.shards < 1 || shape_.shards > most_shards || shape_.workers < 1 || shape_.workers > most_workers)
    raise(status::data_loss, text("\"", join_path(folder(0), "of"), "\" speaks of ", shape_.shards, " ps and ",
                                  shape_.workers, " workers; expected 1 to ", most_shards, " and 1 to ", most_workers,
                                  ", which threads of one process can be; restore the file"));
  for (std::uint32_t k = 1; k < shape_.shards; ++k) of_.push_back(of(k));
  for (std::uint32_t k = 0; k < shape_.shards; ++k) {
    const std::string path = join_path(folder(k), "orders");
    if (const int e = fs.exists(path); e == ENOENT) {
      if (k == 0)
        raise(status::not_found,
              text("there is no log of orders \"", path,
                   "\": a synchronous run without backups has none, since its bits are the same in every run; run its "
                   "program again, in any cluster. Otherwise restore the file"));
      break;
    }
    logs_.emplace_back(fs, path);
    if (logs_[k].first() <= logs_[k].last() && (logs_[k].of().number != k || logs_[k].of().of_update != of_update()))
      raise(status::data_loss,
            text('"', path, "\" is the log of orders of ps ", logs_[k].of().number, ", with ", logs_[k].of().of_update,
                 " gradients an update; expected one of ps ", k, ", with ", of_update(), "; restore it"));
  }
  first_ = logs_[0].first(), last_ = logs_[0].last();
  for (const order_log& log : logs_) {
    if (log.last() < log.first()) {
      last_ = first_ - 1;
    } else if (log.first() != first_) {
      raise(status::failed_precondition,
            text('"', log.path(), "\" begins with update ", log.first(), ", and \"", logs_[0].path(), "\" with ",
                 first_, ": one of them was moved away meanwhile; nothing that was before can be repeated without it"));
    }
    last_ = std::min(last_, log.last());
  }
}

GRADUS_BODY void replay_plan::must_be(const cluster_fingerprint& of, const decider_options& decides,
                                      std::uint32_t shard) const {
  const std::string difference =
      difference_of(logged_run(of, decides, shard), "this program", of_.at(shard), "the log");
  if (!difference.empty())
    raise(status::failed_precondition, text("the log in \"", directory_, "\" is of another run: ", difference,
                                            "; replay it with the program and the settings that it was made with"));
  if (decides.logs_orders(shard) && shard >= logs_.size())
    raise(status::not_found,
          text("there is no log of orders of ps ", shard, " in \"", directory_, "\"; restore ps-", shard, "/orders"));
}

GRADUS_BODY order_entry replay_plan::at(std::uint64_t order, std::uint32_t i) const {
  const order_entry e = logs_[0].at(order, i);
  if (e.worker >= shape_.workers)
    logs_[0].refuse(order, i, text("it is of worker ", e.worker, ", and there are ", shape_.workers));
  for (std::size_t k = 1; k < logs_.size(); ++k)
    if (const order_entry other = logs_[k].at(order, i); other.worker != e.worker || other.number != e.number)
      logs_[k].refuse(order, i,
                      text("it is gradient ", other.number, " of worker ", other.worker, ", and \"", logs_[0].path(),
                           "\" has gradient ", e.number, " of worker ", e.worker));
  return e;
}

GRADUS_BODY std::uint64_t replay_plan::read(std::uint64_t order, std::uint32_t i, std::uint32_t shard) const {
  const order_log& log = logs_[shard < logs_.size() ? shard : 0];
  const std::uint64_t read = log.at(order, i).read;
  if (read + 1 < first_)
    raise(status::failed_precondition, text("update ", order, " was computed from the values of update ", read,
                                            ", and \"", log.path(), "\" begins behind update ", first_ - 1,
                                            ": it was moved away meanwhile; nothing can be repeated without "
                                            "what was before"));
  return read;
}

GRADUS_BODY bool replay_plan::find(std::uint64_t worker, place& p, std::uint64_t until) const {
  for (; p.order <= until; p = behind(p))
    if (logs_[0].at(p.order, p.i).worker == worker) return true;
  return false;
}

}  // namespace gradus::detail
