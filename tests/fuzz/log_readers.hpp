// What a process finds where another one, or a board, has written: the logs of a parameter server, the image of a
// board's flash, frames from a stream of bytes; as functions of bytes (readers.hpp).
#pragma once
#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gradus/cluster/federated_frame.hpp"
#include "gradus/cluster/node_log.hpp"
#include "gradus/cluster/order_log.hpp"
#include "gradus/codec/flash_image.hpp"
#include "gradus/store/crc32c.hpp"
#include "gradus/testing/faulty_files.hpp"
#include "text_readers.hpp"

namespace fuzz {

// The files of a folder in a row, as in packed_files: each has its length before it, the last takes the rest.
inline std::vector<std::span<const std::byte>> split(std::span<const std::byte> all, std::size_t files) {
  std::vector<std::span<const std::byte>> out;
  while (out.size() + 1 < files) {
    std::uint32_t n = 0;
    if (all.size() >= 4) std::memcpy(&n, all.data(), 4), all = all.subspan(4);
    out.push_back(all.first(std::min<std::size_t>(n, all.size())));
    all = all.subspan(out.back().size());
  }
  out.push_back(all);
  return out;
}
template <class Number>
Number number_at(std::span<const std::byte> from, std::size_t at) {
  Number n;
  std::memcpy(&n, from.data() + at, sizeof n);
  return n;
}
// A forger's checksum of some bytes, where it belongs.
inline void put_crc(std::span<std::byte> file, std::size_t at, std::span<const std::byte> of) {
  const std::uint32_t crc = crc32c(of);
  std::memcpy(file.data() + at, &crc, 4);
}

// The folder's files; one of no bytes is not there. The state of the log's machine is the list of its records.
inline constexpr const char* log_files[] = {"d/snapshot-2", "d/log-1", "d/log-3"};
inline std::vector<std::string> recovered(detail::node_log& log) {
  std::vector<std::string> all;
  const bool any = log.recover(
      [&](detail::bytes_in& in) {
        all.clear();
        for (std::size_t n = in.count(4); n != 0; --n) all.push_back(in.string());
        if (all.size() != 2) in.refuse("it is the state after another record");
      },
      [&](std::span<const std::byte> r) {
        all.emplace_back(reinterpret_cast<const char*>(r.data()), r.size());
        return all.back() != "unknown";
      });
  must_hold(any == !all.empty() && log.last() == all.size() && log.synced_up_to() == log.last(), "records are missing");
  return all;
}
inline bool read_node_log(std::span<const std::byte> file) {
  const testing::faulty_files disk;
  disk.make_directory("d");
  std::size_t i = 0;
  for (const auto& one : split(file, std::size(log_files))) {
    if (!one.empty()) publish(disk, log_files[i], byte_pieces(&one, 1));
    ++i;
  }
  std::vector<std::string> there;
  const auto attempt = [&] {
    detail::node_log log(disk, "d");
    there = recovered(log);
    log.append(std::as_bytes(std::span("next", 4)));
    log.sync();
  };
  try {
    attempt();
  } catch (const error& e) {
    must_hold(e.kind() == status::data_loss || e.kind() == status::failed_precondition, e.what());
    return false;
  }
  there.push_back("next");
  detail::node_log again(disk, "d");
  must_hold(recovered(again) == there, "a log that does not go on");
  return true;
}
inline void seal_node_log(std::vector<std::byte>& packed) {
  const std::span<std::byte> all(packed);
  std::size_t which = 0;
  for (const auto& one : split(packed, std::size(log_files))) {
    const std::span<std::byte> f = all.subspan(static_cast<std::size_t>(one.data() - packed.data()), one.size());
    if (which++ == 0) {
      if (f.size() < 32) continue;
      put_crc(f, 24, f.subspan(32));
      put_crc(f, 28, f.first(28));
      continue;
    }
    if (f.size() < 24) continue;
    put_crc(f, 20, f.first(20));
    for (std::size_t at = 24; f.size() - at >= 40;) {
      const auto n = number_at<std::uint64_t>(f, at + 8);
      if (n > f.size() - at - 40) break;
      put_crc(f, at + 4, f.subspan(at + 40, static_cast<std::size_t>(n)));
      put_crc(f, at + 36, f.subspan(at, 36));
      at += 40 + static_cast<std::size_t>(n);
    }
  }
}

// What can be read is gone on with: its entries stay, and the next update is behind them.
inline bool read_order_log(std::span<const std::byte> file) {
  const testing::faulty_files disk;
  publish(disk, "orders", byte_pieces(&file, 1));
  const auto is_known = [](const error& e) {
    return e.kind() == status::data_loss || e.kind() == status::failed_precondition;
  };
  std::vector<detail::order_entry> there;
  detail::order_log_of of;
  std::uint64_t first = 0, last = 0;
  const auto entries = [&] {
    std::vector<detail::order_entry> all;
    const detail::order_log log(disk, "orders");
    of = log.of(), first = log.first(), last = log.last();
    for (std::uint64_t order = first; order <= last; ++order)
      for (std::uint32_t k = 0; k < of.of_update; ++k) all.push_back(log.at(order, k));
    must_hold(all.size() <= file.size() / 16 + of.of_update, "more entries than bytes");
    return all;
  };
  bool whole = true;
  try {
    there = entries();
  } catch (const error& e) {
    must_hold(is_known(e), e.what());
    whole = false;
  }
  try {
    detail::order_file to(disk, "orders", of);
    const std::uint64_t known = to.last();
    if (!whole || last < first) {
      to.keep(known);
      return false;
    }
    must_hold(known == last, "a writer that knows another last update");
    if (of.of_update > 64) return true;
    for (std::uint32_t k = 0; k < of.of_update; ++k)
      to.add({.order = known + 1, .read = known, .worker = k, .number = 1});
    to.sync(true);
  } catch (const error& e) {
    must_hold(!whole && is_known(e), e.what());
    return false;
  }
  const std::uint64_t before = last;
  const auto now = entries();
  must_hold(last == before + 1 && now.size() == there.size() + of.of_update, "an update that was not added");
  for (std::size_t k = 0; k < there.size(); ++k)
    must_hold(now[k].order == there[k].order && now[k].read == there[k].read && now[k].worker == there[k].worker &&
                  now[k].number == there[k].number,
              "another entry than before");
  return true;
}
inline void seal_order_log(std::vector<std::byte>& file) {
  const std::span<std::byte> f(file);
  if (f.size() < 32) return;
  put_crc(f, 28, f.first(28));
  const auto first = number_at<std::uint64_t>(f, 8);
  const std::uint64_t each = std::max<std::uint32_t>(1, number_at<std::uint32_t>(f, 16));
  for (std::size_t i = 0; 32 + 16 * (i + 1) <= f.size(); ++i) {
    std::byte all[20];
    const std::uint64_t order = first + i / each;
    std::memcpy(all, &order, 8);
    std::memcpy(all + 8, f.data() + 32 + 16 * i, 12);
    put_crc(f, 32 + 16 * i + 12, all);
  }
}

// What was read is written, and read again as the same.
inline bool read_flash(std::span<const std::byte> image) {
  const decoded d = read_flash_image(image, {.entries = 1000});
  if (!d.ok()) {
    must_hold(d.content.records.empty(), "records of an image that was refused");
    must_hold(d.kind == status::data_loss || d.kind == status::failed_precondition || d.kind == status::not_found ||
                  d.kind == status::resource_exhausted,
              d.problem.c_str());
    return false;
  }
  for (const record& r : d.content.records)
    must_hold(r.name.empty() || detail::problem_of(r).empty(), "a record that does not hold together");
  std::optional<std::vector<std::byte>> image_of_it;
  try {
    image_of_it = write_flash_image(d.content, {.sector_bytes = 128});
  } catch (const invalid_argument&) {
    return false;  // what no checkpoint can hold: a tensor without a name
  }
  const decoded again = read_flash_image(*image_of_it);
  must_hold(
      again.ok() && again.content.records.size() == d.content.records.size() && again.content.step == d.content.step,
      "an image that does not come back");
  for (std::size_t i = 0; i < d.content.records.size(); ++i) {
    const record &a = d.content.records[i], &b = again.content.records[i];
    must_hold(a.name == b.name && a.type == b.type && a.dims == b.dims && a.blob == b.blob &&
                  std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end()),
              "a tensor that does not come back");
  }
  return true;
}
inline void seal_flash(std::vector<std::byte>& image) {
  using format = detail::flash_format;
  for (std::size_t at = 0; at + format::payload_at <= image.size(); at += format::line) {
    if (std::memcmp(image.data() + at, format::mark, sizeof format::mark) != 0) continue;
    std::uint32_t words[format::words];
    std::byte* const header = image.data() + at + format::header_at;
    std::memcpy(words, header, sizeof words);
    const std::uint32_t n = words[format::bytes], all = format::padded(n);
    if (n <= image.size() - format::payload_at && all >= n && all <= image.size() - format::payload_at) {
      std::vector<std::byte> payload(all);
      const std::size_t from = at + format::payload_at;
      for (std::size_t i = 0; i < all; ++i) payload[i] = image[(from + i) % image.size()];
      // The identities, as far as lengths lead.
      std::uint32_t sum = 0;
      for (std::size_t i = 0; n - i >= sizeof(format::entry);) {
        format::entry e;
        std::memcpy(&e, payload.data() + i, sizeof e);
        const std::size_t name_at = i + sizeof e, dims_at = name_at + e.name_bytes;
        if (e.rank > max_rank || dims_at + 4 * std::size_t{e.rank} + e.bytes > n) break;
        extents dims;
        for (std::size_t k = 0; k < e.rank; ++k) dims.push(number_at<std::uint32_t>(payload, dims_at + 4 * k));
        const std::string name(reinterpret_cast<const char*>(payload.data()) + name_at, e.name_bytes);
        e.id = format::identity(name, static_cast<dtype>(e.type), dims).id;
        std::memcpy(payload.data() + i, &e, sizeof e);
        sum += e.id;
        i = dims_at + 4 * std::size_t{e.rank} + e.bytes;
      }
      for (std::size_t i = 0; i < all; ++i) image[(from + i) % image.size()] = payload[i];
      words[format::fingerprint] = sum;
      words[format::payload_crc] = crc32c(payload);
    }
    std::memcpy(header, words, sizeof words);
    put_crc(image, at + format::header_at + 28, std::span<const std::byte>(header, 28));
  }
}

// A stream of frames whose numbers take 24 bytes: the same is found in it whole and byte by byte.
inline bool read_federated(std::span<const std::byte> stream) {
  struct listener {
    detail::federated_receiver receiver;
    std::byte room[24] = {};
    std::vector<std::uint32_t> said;
    std::size_t whole = 0, damaged = 0;
    void take(std::span<const std::byte> bytes) {
      using event = detail::federated_receiver::event;
      std::size_t calls = 0;
      const std::size_t most = bytes.size() + 2;
      for (event e; (e = receiver.next(bytes, room)) != event::nothing;) {
        must_hold(++calls <= 2 * most + 80, "more events than bytes");
        said.push_back(static_cast<std::uint32_t>(e));
        if (e == event::head && receiver.head().bytes == sizeof room) damaged += receiver.accept();
        if (e == event::payload) {
          ++whole, said.push_back(receiver.frame().round);
          must_hold(crc32c(room) == receiver.frame().crc, "numbers of another checksum");
        }
        damaged += e == event::damaged;
      }
    }
  };
  listener at_once, slowly;
  at_once.take(stream);
  for (const std::byte& b : stream) slowly.take({&b, 1});
  must_hold(at_once.said == slowly.said && at_once.receiver.skipped_bytes() == slowly.receiver.skipped_bytes(),
            "other frames byte by byte");
  must_hold(at_once.receiver.skipped_bytes() <= stream.size(), "more bytes skipped than came");
  return at_once.whole != 0 && at_once.damaged == 0 && at_once.receiver.skipped_bytes() == 0 &&
         !at_once.receiver.restart();
}
inline void seal_federated(std::vector<std::byte>& stream) {
  const std::span<std::byte> f(stream);
  for (std::size_t at = 0; at + 40 <= f.size();) {
    if (std::memcmp(f.data() + at, detail::federated_frame::mark, 4) != 0) {
      ++at;
      continue;
    }
    const auto n = number_at<std::uint32_t>(f, at + 24);
    const bool fits = n <= f.size() - at - 40;
    if (fits) put_crc(f, at + 28, f.subspan(at + 40, n));
    put_crc(f, at + 36, f.subspan(at, 36));
    at += 40 + (fits ? n : 0);
  }
}

}  // namespace fuzz
