// The bodies of order_log.hpp.
#pragma once
#include "../base/body.hpp"
#include "order_log.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "../store/crc32c.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// The bytes of the log's file (docs/formats/cluster_log.md).
namespace order_bytes {

inline constexpr char magic[] = "GRDO";
inline constexpr std::uint16_t version = 2;
inline constexpr std::size_t head = 32, entry = 16;
inline constexpr std::uint32_t most_of_update = 1 << 20;

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
// Returns the checksum of an entry: that of its order, which is not stored in it, and of the twelve bytes before the
// checksum.
inline std::uint32_t checksum(std::uint64_t order, std::span<const std::byte> e) {
  std::byte all[8 + 12];
  put(all, order);
  std::memcpy(all + 8, e.data(), 12);
  return crc32c(std::span<const std::byte>(all));
}

struct found {
  order_log_of of;
  std::uint64_t first = 1, updates = 0;
  std::size_t good = 0;     // bytes of the head and of whole updates
  std::string damage = {};  // of an entry with whole ones behind it
};
// Checks the bytes of a file, and returns what is in it.
inline found look(const std::string& path, std::span<const std::byte> all) {
  found f;
  const auto damage = [&](std::size_t at, const std::string& what) {
    return text("the log of orders \"", path, "\" is damaged at byte ", at, ": ", what,
                "; restore it, or move it away: the run goes on without it, and cannot be repeated");
  };
  const auto damaged = [&](std::size_t at, const std::string& what) { raise(status::data_loss, damage(at, what)); };
  const auto begin = all.first(std::min(all.size(), head));
  // The process ended, or the power failed, before the head was written.
  if (std::ranges::all_of(begin, [](std::byte b) { return b == std::byte{0}; })) return f;
  if (std::memcmp(begin.data(), magic, std::min<std::size_t>(begin.size(), 4)) != 0)
    raise(
        status::failed_precondition,
        text('"', path, "\" is of version 1 of the format, which does not say from what a gradient was computed, and ",
             "this build reads version ", version, "; use the build that wrote it"));
  if (begin.size() < head) return f;
  if (get<std::uint32_t>(all, head - 4) != crc32c(all.first(head - 4))) damaged(0, "its head fails its checksum");
  if (const auto v = get<std::uint16_t>(all, 4); v != version)
    raise(status::failed_precondition, text('"', path, "\" is of version ", v, " of the format, and this build reads ",
                                            version, "; use the build that wrote it"));
  f.first = get<std::uint64_t>(all, 8);
  f.of = {get<std::uint32_t>(all, 20), get<std::uint32_t>(all, 16)};
  if (f.first == 0 || f.first > UINT64_MAX / 2 || f.of.of_update == 0 || f.of.of_update > most_of_update)
    damaged(8, text("it begins with update ", f.first, ", of ", f.of.of_update, " gradients"));
  const std::uint64_t entries = (all.size() - head) / entry;
  const auto is_whole = [&](std::uint64_t i) {
    const auto e = all.subspan(head + static_cast<std::size_t>(i) * entry, entry);
    return get<std::uint32_t>(e, 12) == checksum(f.first + i / f.of.of_update, e);
  };
  std::uint64_t whole = 0;
  while (whole < entries && is_whole(whole)) ++whole;
  for (std::uint64_t i = whole + 1; i < entries && f.damage.empty(); ++i)
    if (is_whole(i))
      f.damage = damage(
          head + static_cast<std::size_t>(whole) * entry,
          text("an entry of update ", f.first + whole / f.of.of_update,
               " fails its checksum, and one behind it, of update ", f.first + i / f.of.of_update, ", does not"));
  f.updates = whole / f.of.of_update;
  f.good = head + static_cast<std::size_t>(f.updates * f.of.of_update) * entry;
  return f;
}

}  // namespace order_bytes

GRADUS_BODY order_file::order_file(const any_file_system& fs, const std::string& path, const order_log_of& of)
    : fs_(fs), of_(of) {
  {
    opened_bytes there(fs);
    const auto p = there.open(path);
    if (p && p.error != ENOENT) raise(p);
    const auto all = there.bytes();
    const order_bytes::found f = order_bytes::look(path, all);
    if (f.good != 0 && (f.of.number != of.number || f.of.of_update != of.of_update))
      raise(status::failed_precondition,
            text('"', path, "\" is the log of orders of ps ", f.of.number, ", with ", f.of.of_update,
                 " gradients an update; expected one of ps ", of.number, ", with ", of.of_update,
                 ": it lies in the wrong folder; move it where it belongs"));
    if (f.updates != 0) first_ = f.first, last_ = f.first + f.updates - 1;
    good_ = f.updates != 0 ? f.good : 0, damage_ = f.damage, damaged_ = f.first + f.updates;
    if (good_ != all.size() && damage_.empty()) {
      const auto kept = all.first(good_);
      publish(fs, path, byte_pieces(&kept, 1));
    }
  }
  file_.emplace(fs, path);
}

GRADUS_BODY void order_file::cut(std::size_t bytes) {
  const std::string path = file_->path();
  file_.reset();
  {
    opened_bytes there(fs_);  // the file may be larger than memory
    if (const auto p = there.open(path)) raise(p);
    const auto kept = there.bytes().first(std::min(bytes, there.bytes().size()));
    publish(fs_, path, byte_pieces(&kept, 1));
  }
  file_.emplace(fs_, path);
  damage_.clear();
}

GRADUS_BODY void order_file::add(const order_entry& e) {
  if (e.order <= last_) return;
  if (!damage_.empty()) {
    if (e.order > damaged_) return;  // keep() raises the error
    cut(good_);                      // this update and those after it are written again
  }
  if (last_ != 0 && e.order != last_ + 1)
    raise(status::data_loss, text('"', file_->path(), "\" ends with order ", last_, ", and the next one is ", e.order,
                                  ": what is between is lost; move the file away to go on without it"));
  using namespace order_bytes;
  if (last_ == 0 && begun_ == 0) {
    std::byte h[head] = {};
    std::memcpy(h, magic, 4);
    put(h + 4, version), put(h + 8, e.order), put(h + 16, of_.of_update), put(h + 20, of_.number);
    put(h + head - 4, crc32c(std::span<const std::byte>(h).first(head - 4)));
    file_->write(std::span<const std::byte>(h));
  }
  std::byte b[entry] = {};
  const std::uint64_t behind = e.read < e.order ? e.order - 1 - e.read : 0;  // 0 for a forged `read`
  put(b, e.worker), put(b + 4, e.number);
  put(b + 8, static_cast<std::uint32_t>(std::min<std::uint64_t>(behind, UINT32_MAX)));
  put(b + 12, checksum(e.order, b));
  file_->write(std::span<const std::byte>(b));
  is_flushed_ = is_durable_ = false;
  if (++begun_ == of_.of_update) last_ = e.order, begun_ = 0;
}

GRADUS_BODY void order_file::keep(std::uint64_t order) {
  if (!damage_.empty()) {
    if (order >= damaged_) raise(status::data_loss, damage_);
    cut(good_);
  }
  if (order >= last_) return;
  const std::uint64_t left = order < first_ ? 0 : (order - first_ + 1) * of_.of_update;
  cut(left == 0 ? 0 : order_bytes::head + static_cast<std::size_t>(left) * order_bytes::entry);
  last_ = left == 0 ? 0 : order;
}

GRADUS_BODY void order_file::sync(bool durable) {
  if (durable ? is_durable_ : is_flushed_) return;
  if (durable)
    file_->sync(), is_durable_ = true;
  else
    file_->flush();
  is_flushed_ = true;
}

GRADUS_BODY order_log::order_log(const any_file_system& fs, const std::string& path) : path_(path), file_(fs) {
  if (const auto p = file_.open(path)) raise(p);
  const order_bytes::found f = order_bytes::look(path, file_.bytes());
  if (!f.damage.empty()) raise(status::data_loss, f.damage);
  of_ = f.of, first_ = f.first, updates_ = f.updates;
}

GRADUS_BODY order_entry order_log::at(std::uint64_t order, std::uint32_t i) const {
  using namespace order_bytes;
  const std::uint64_t n = (order - first_) * of_.of_update + i;
  const auto e = file_.bytes().subspan(head + static_cast<std::size_t>(n) * entry, entry);
  const std::uint64_t behind = get<std::uint32_t>(e, 8);
  if (behind > order - 1) refuse(order, i, text("its values are of ", behind, " updates before the one before it"));
  return {order, order - 1 - behind, get<std::uint32_t>(e, 0), get<std::uint32_t>(e, 4)};
}

GRADUS_BODY void order_log::refuse(std::uint64_t order, std::uint32_t i, const std::string& what) const {
  raise(status::data_loss,
        text("the log of orders \"", path_, "\" is damaged at byte ",
             order_bytes::head + ((order - first_) * of_.of_update + i) * order_bytes::entry, ", in update ", order,
             ": ", what, "; restore it: nothing can be repeated from this update on"));
}

}  // namespace gradus::detail
