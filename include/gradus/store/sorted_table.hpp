// A sorted table of keys and values in one file: LevelDB's table format, as TensorFlow writes it for the index of a
// checkpoint (tensorflow/core/lib/io/table_builder.cc). docs/formats/tensor_bundle.md has a worked example.
//
//   table    = data blocks, metaindex block (empty), index block, footer
//   block    = contents, a type byte (0 as it is, 1 Snappy), u32 masked CRC-32C of both
//   contents = entries, u32 offset of each restart, u32 number of restarts
//   entry    = varint shared, varint unshared, varint value bytes, the key from `shared` on, the value
//   footer   = varint offset and size of the metaindex, then of the index, zeros up to byte 40, u64 magic
//
// At a restart (every 16th entry; in the index block every one) a key shares nothing with the key before. The index
// holds one entry for each data block: its offset and size, under a key that is not less than the last key of the block
// and less than the first of the next. Keys are compared as unsigned bytes.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <string>

#include "crc32c.hpp"
#include "snappy.hpp"

namespace gradus::inline GRADUS_BUILD {

// The layout of the tables that TensorFlow writes.
struct table_layout {
  static constexpr std::uint64_t magic = 0xdb4775248b80fb57;
  static constexpr std::size_t footer_bytes = 48, trailer_bytes = 5;
  std::size_t block_bytes = 262144;  // a block ends once it is this long
  std::size_t restart_interval = 16;
};

namespace detail {
// This is the place of a block's contents.
struct table_handle {
  std::uint64_t offset = 0, size = 0;
};
std::vector<std::byte> table_footer(const table_handle& metaindex, const table_handle& index);
}  // namespace detail

// Writes a table in memory. Keys are added in strictly increasing order.
class table_writer {
public:
  explicit table_writer(table_layout layout = {}) : layout_(layout), data_(layout.restart_interval) {}

  // Raises invalid_argument for a key that is not greater than the one before.
  void add(std::string_view key, std::span<const std::byte> value);

  // Returns the whole table. Nothing may be added after that.
  std::vector<std::byte> finish();

private:
  using handle = detail::table_handle;
  class block_builder {
  public:
    explicit block_builder(std::size_t interval) : interval_(interval) {}
    bool empty() const { return bytes_.empty(); }
    std::size_t size() const { return bytes_.size() + 4 * restarts_.size() + 4; }
    void add(std::string_view key, std::span<const std::byte> value);
    // Returns the contents; the builder then starts anew.
    std::vector<std::byte> take();

  private:
    std::size_t interval_, since_ = 0;
    std::vector<std::byte> bytes_;
    std::vector<std::uint32_t> restarts_{0};
    std::string last_;
  };

  void end_block();
  void end_index_entry(std::string_view key);
  handle write(block_builder& block);
  // Returns a short key that is >= last and < next.
  static std::string separator(std::string_view last, std::string_view next);
  static std::string successor(std::string_view last);
  static std::string bumped(std::string_view key, std::size_t i);

  table_layout layout_;
  std::vector<std::byte> out_;
  block_builder data_, index_{1};
  std::string last_;
  bool any_ = false, pending_ = false;
  handle block_;
};

namespace detail {

// One block of a table that may be malicious; it steps over the entries with a single buffer for the key.
class table_block {
public:
  // Takes a block's contents. Returns the problem of its restarts, or an empty text.
  std::string open(std::span<const std::byte> contents);
  // Steps to the next entry. Returns false at the end, or if it set `problem`.
  bool next(std::string& problem);

  std::string key;
  std::span<const std::byte> value;

private:
  std::uint32_t next_restart() const;
  std::span<const std::byte> restarts_;  // those not reached yet
  varint_source rest_{{}};
  std::size_t size_ = 0;
  bool first_ = true;
};

}  // namespace detail

// Reads a table in memory, whose bytes may be anything: `open` checks the footer, the index and the metaindex, `each`
// checks every block when it reaches it. Both return the problem, or an empty text. No more than one data block is
// decompressed at a time.
class sorted_table {
public:
  // Larger decompressed blocks are refused; TensorFlow's have some 256 KiB.
  static constexpr std::size_t most_block_bytes = std::size_t{8} << 20;

  std::string open(std::span<const std::byte> file);

  // Calls f(key, value) for each entry in order; both views are valid only during the call. `f` returns its problem
  // with the entry, or an empty std::string; the walk ends with the first problem.
  template <class F>
  std::string each(F&& f) const {
    std::string last, limit;  // of the block before: its last key, and its key in the index
    bool any = false;
    return each_of(index_, "index", [&](std::string_view bound, std::span<const std::byte> value) {
      handle at;
      detail::varint_source in(value);
      at.offset = in.varint(), at.size = in.varint();
      if (in.bad() || !in.done()) return std::string("an entry of its index is no place of a block");
      bool first = true;
      std::string before = std::move(last);
      const auto check = [&](std::string_view key, std::span<const std::byte> content) {
        if (first && any && (key <= before || key <= limit))
          return text("its block at ", at.offset, " begins with a key that belongs before it");
        first = false;
        return f(key, content);
      };
      if (std::string problem = each_of(at, "data", check, &last); !problem.empty()) return problem;
      if (first) return text("its data block at ", at.offset, " is empty");
      if (last > bound) return text("its index gives the block at ", at.offset, " a key that is less than its last");
      limit = bound, any = true;
      return std::string();
    });
  }

private:
  using handle = detail::table_handle;

  // `last` receives the block's last key.
  template <class F>
  std::string each_of(const handle& at, std::string_view what, F&& f, std::string* last = nullptr) const {
    const auto located = [&](std::string_view why) { return text("its ", what, " block at ", at.offset, ": ", why); };
    const std::uint64_t end = file_.size() - table_layout::footer_bytes, trailer = table_layout::trailer_bytes;
    if (at.offset > end || end - at.offset < trailer || at.size > end - at.offset - trailer)
      return located(text(at.size, " bytes reach past its end"));
    const auto stored = file_.subspan(static_cast<std::size_t>(at.offset), static_cast<std::size_t>(at.size) + 1);
    std::uint32_t crc = 0;
    std::memcpy(&crc, stored.data() + stored.size(), sizeof crc);
    if (mask(crc32c(stored)) != crc) return located("its checksum does not fit its bytes");
    auto contents = stored.first(stored.size() - 1);
    std::vector<std::byte> unpacked;
    std::string problem;
    if (stored.back() == std::byte{1}) {
      problem = snappy_decode(contents, most_block_bytes, unpacked);
      contents = unpacked;
    } else if (stored.back() != std::byte{0}) {
      problem = text("its type ", std::to_integer<int>(stored.back()), " is unknown; 0 and 1 are");
    }
    detail::table_block block;
    if (problem.empty()) problem = block.open(contents);
    if (!problem.empty()) return located(problem);
    while (block.next(problem))
      if (std::string why = f(block.key, block.value); !why.empty()) return why;
    if (last != nullptr) *last = std::move(block.key);
    return problem.empty() ? problem : located(problem);
  }

  std::span<const std::byte> file_;
  handle index_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "sorted_table.ipp"
#endif
