// The bodies of server_log.hpp.
#pragma once
#include "../base/body.hpp"
#include "server_log.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "../store/file_bytes.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY order_file::order_file(const any_file_system& fs, const std::string& path) {
  {
    opened_bytes there(fs);
    const auto p = there.open(path);
    if (p && p.error != ENOENT) raise(p);
    const auto all = there.bytes();
    std::size_t good = 0;
    for (; all.size() - good >= sizeof(order_entry); good += sizeof(order_entry)) {
      order_entry e;
      std::memcpy(&e, all.data() + good, sizeof e);
      if (e.order == 0 || (last_ != 0 && e.order != last_ + 1)) break;
      last_ = e.order;
    }
    if (good != all.size()) {
      const auto kept = all.first(good);
      publish(fs, path, byte_pieces(&kept, 1));
    }
  }
  file_.emplace(fs, path);
}

GRADUS_BODY void order_file::add(const order_entry& e) {
  if (e.order <= last_) return;
  if (last_ != 0 && e.order != last_ + 1)
    raise(status::data_loss, text('"', file_->path(), "\" ends with order ", last_, ", and the next one is ", e.order,
                                  ": what is between is lost; move the file away to go on without it"));
  file_->write(std::as_bytes(std::span(&e, 1)));
  last_ = e.order, is_synced_ = false;
}

GRADUS_BODY void order_file::sync(bool durable) {
  if (std::exchange(is_synced_, true)) return;
  if (durable)
    file_->sync();
  else
    file_->flush();
}

GRADUS_BODY server_log::server_log(const any_file_system& fs, const std::string& directory, bool durable,
                                   cluster_fingerprint of, const decider_options& decides, std::uint32_t shard)
    : log(fs, directory, {.durable = durable}), is_durable(durable) {
  const auto add = [&](const char* name, std::uint64_t n) {
    of.settings.emplace_back(text("cluster: ", name), text(n));
  };
  add("number of ps", decides.shape.shards), add("number of workers", decides.shape.workers), add("this ps", shard);
  add("gradients of an update", decides.mode == staleness::synchronous ? decides.round.aggregate : 1);
  add("most updates that a worker leads by", decides.mode == staleness::bounded ? decides.bound : 0);
  std::sort(of.settings.begin(), of.settings.end());
  const std::string path = join_path(directory, "of");
  std::vector<std::byte> there;
  const auto p = try_read(fs, path, std::uint64_t{1} << 30, there);
  if (p && p.error != ENOENT) raise(p);
  if (!p) {
    const std::string difference = difference_of(of, "this run", cluster_fingerprint_from(there), "the log");
    if (!difference.empty())
      raise(status::failed_precondition,
            text("the log in \"", directory, "\" is of another run: ", difference,
                 "; go on as it was begun, or give another directory to go on from the last checkpoint"));
  } else {
    const std::vector<std::byte> bytes = to_bytes(of);
    const std::span<const std::byte> piece(bytes);
    publish(fs, path, byte_pieces(&piece, 1));
  }
  if (shard == cluster_shape::decider && decides.mode != staleness::synchronous)
    orders.emplace(fs, join_path(directory, "orders"));
}

}  // namespace gradus::detail
