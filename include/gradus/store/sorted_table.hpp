// A sorted table of keys and values in one file: LevelDB's table format, as TensorFlow writes it for the index of a
// checkpoint (tensorflow/core/lib/io/table_builder.cc). docs/formats/tensor_bundle.md has a worked example.
//
//   table    = data blocks, metaindex block (empty), index block, footer
//   block    = contents, a type byte (0 as it is, 1 Snappy), u32 masked CRC-32C of both
//   contents = entries, u32 offset of each restart, u32 number of restarts
//   entry    = varint shared, varint unshared, varint value bytes, the key from `shared` on, the value
//   footer   = varint offset and size of the metaindex, then of the index, zeros up to byte 40, u64 magic
//
// At a restart (every 16th entry; in the index block every one) a key shares nothing with the one before. The index
// holds one entry for each data block: offset and size, under a key not less than its last and less than the next's
// first. Keys are compared as unsigned bytes.
#pragma once
#include <algorithm>
#include <string>

#include "crc32c.hpp"
#include "snappy.hpp"

namespace gradus {

// How TensorFlow cuts tables.
struct table_layout {
  static constexpr std::uint64_t magic = 0xdb4775248b80fb57;
  static constexpr std::size_t footer_bytes = 48, trailer_bytes = 5;
  std::size_t block_bytes = 262144;  // a block ends once it is this long
  std::size_t restart_interval = 16;
};

namespace detail {
// Where a block's contents are.
struct table_handle {
  std::uint64_t offset = 0, size = 0;
};
inline std::vector<std::byte> table_footer(const table_handle& metaindex, const table_handle& index) {
  std::vector<std::byte> out;
  for (const auto& h : {metaindex, index}) put_varint(out, h.offset), put_varint(out, h.size);
  out.resize(table_layout::footer_bytes - sizeof table_layout::magic);
  put_fixed(out, table_layout::magic);
  return out;
}
}  // namespace detail

// Writes a table in memory. Keys are added in strictly increasing order.
class table_writer {
public:
  explicit table_writer(table_layout layout = {}) : layout_(layout), data_(layout.restart_interval) {}

  // Raises invalid_argument for a key that is not greater than the one before.
  void add(std::string_view key, std::span<const std::byte> value) {
    if (any_ && key <= last_)
      raise(status::invalid_argument, text("a table's keys increase; \"", key, "\" came after \"", last_, "\""));
    if (key.size() + value.size() >= 2 * layout_.block_bytes) end_block();
    if (pending_) end_index_entry(separator(last_, key));
    last_ = key, any_ = true;
    data_.add(key, value);
    if (data_.size() >= layout_.block_bytes) end_block();
  }

  // The whole table. The writer is then at its end.
  std::vector<std::byte> finish() {
    end_block();
    block_builder meta(1);
    const handle metaindex = write(meta);
    if (pending_) end_index_entry(successor(last_));
    const handle index = write(index_);
    detail::put_bytes(out_, detail::table_footer(metaindex, index));
    return std::move(out_);
  }

private:
  using handle = detail::table_handle;
  class block_builder {
  public:
    explicit block_builder(std::size_t interval) : interval_(interval) {}
    bool empty() const { return bytes_.empty(); }
    std::size_t size() const { return bytes_.size() + 4 * restarts_.size() + 4; }
    void add(std::string_view key, std::span<const std::byte> value) {
      std::size_t shared = 0;
      if (since_ == interval_) {
        restarts_.push_back(static_cast<std::uint32_t>(bytes_.size()));
        since_ = 0;
      } else {
        const std::size_t most = std::min(key.size(), last_.size());
        while (shared < most && key[shared] == last_[shared]) ++shared;
      }
      detail::put_varint(bytes_, shared);
      detail::put_varint(bytes_, key.size() - shared);
      detail::put_varint(bytes_, value.size());
      detail::put_bytes(bytes_, key.substr(shared));
      detail::put_bytes(bytes_, value);
      last_ = key;
      ++since_;
    }
    // The contents; then it starts anew.
    std::vector<std::byte> take() {
      for (const std::uint32_t at : restarts_) detail::put_fixed(bytes_, at);
      detail::put_fixed(bytes_, static_cast<std::uint32_t>(restarts_.size()));
      restarts_ = {0}, since_ = 0, last_.clear();
      return std::move(bytes_);
    }

  private:
    std::size_t interval_, since_ = 0;
    std::vector<std::byte> bytes_;
    std::vector<std::uint32_t> restarts_{0};
    std::string last_;
  };

  void end_block() {
    if (data_.empty()) return;
    block_ = write(data_);
    pending_ = true;  // its key in the index waits for the next block's first
  }
  void end_index_entry(std::string_view key) {
    std::vector<std::byte> value;
    detail::put_varint(value, block_.offset), detail::put_varint(value, block_.size);
    index_.add(key, value);
    pending_ = false;
  }
  handle write(block_builder& block) {
    std::vector<std::byte> contents = block.take();
    const handle at{out_.size(), contents.size()};
    contents.push_back(std::byte{0});
    detail::put_bytes(out_, contents);
    detail::put_fixed(out_, mask(crc32c(contents)));
    return at;
  }
  // Something short that is >= last and < next.
  static std::string separator(std::string_view last, std::string_view next) {
    const std::size_t common = std::min(last.size(), next.size());
    std::size_t i = 0;
    while (i < common && last[i] == next[i]) ++i;
    if (i < common) {
      const auto byte = static_cast<unsigned char>(last[i]);
      if (byte < 0xFF && byte + 1 < static_cast<unsigned char>(next[i])) return bumped(last, i);
    }
    return std::string(last);
  }
  static std::string successor(std::string_view last) {
    const std::size_t i = last.find_first_not_of('\xff');
    return i == std::string_view::npos ? std::string(last) : bumped(last, i);
  }
  static std::string bumped(std::string_view key, std::size_t i) {
    std::string out(key.substr(0, i + 1));
    ++out.back();
    return out;
  }

  table_layout layout_;
  std::vector<std::byte> out_;
  block_builder data_, index_{1};
  std::string last_;
  bool any_ = false, pending_ = false;
  handle block_;
};

namespace detail {

// One block of a hostile table: walks over its entries with a single buffer for the key.
class table_block {
public:
  // A block's contents. Gives what is wrong with its restarts, or nothing.
  std::string open(std::span<const std::byte> contents) {
    if (contents.size() < 4) return "it is too short for a number of restarts";
    std::uint32_t count = 0;
    std::memcpy(&count, contents.data() + contents.size() - 4, 4);
    if (count == 0 || count > contents.size() / 4 - 1) return text("it cannot have ", count, " restarts");
    const std::size_t entries = contents.size() - 4 - 4 * std::size_t{count};
    restarts_ = contents.subspan(entries, 4 * std::size_t{count});
    rest_ = varint_source(contents.first(entries));
    size_ = entries;
    if (entries == 0 && (count != 1 || next_restart() != 0)) return "it is empty, but has restarts";
    return {};
  }
  // Steps to the next entry. False at the end, or if `problem` is set.
  bool next(std::string& problem) {
    const std::size_t at = size_ - rest_.left();
    if (rest_.done()) {
      if (size_ != 0 && !restarts_.empty()) problem = "a restart is not at an entry";
      return false;
    }
    const bool restart = !restarts_.empty() && next_restart() == at;
    if (restart) restarts_ = restarts_.subspan(4);
    const std::uint32_t shared = rest_.varint32(), unshared = rest_.varint32(), length = rest_.varint32();
    const auto tail = rest_.take(unshared);
    value = rest_.take(length);
    if (rest_.bad())
      problem = text("its entry at ", at, " reaches past its end");
    else if (shared > key.size() || (shared != 0 && restart) || (at == 0 && !restart))
      problem = text("its entry at ", at, " shares ", shared, " bytes, which the key before it does not lend");
    else if (!first_ && as_chars(tail) <= std::string_view(key).substr(shared))
      problem = text("its entry at ", at, " has a key that is not greater than the one before it");
    if (!problem.empty()) return false;
    key.resize(shared);
    key += as_chars(tail);
    first_ = false;
    return true;
  }

  std::string key;
  std::span<const std::byte> value;

private:
  std::uint32_t next_restart() const {
    std::uint32_t at = 0;
    std::memcpy(&at, restarts_.data(), 4);
    return at;
  }
  std::span<const std::byte> restarts_;  // those not met yet
  varint_source rest_{{}};
  std::size_t size_ = 0;
  bool first_ = true;
};

}  // namespace detail

// Reads a table in memory, which may be anything: `open` checks the footer, the index and the metaindex, `each` every
// block as it comes to it. Both give what is wrong, or nothing. At no time more than one block is unpacked.
class sorted_table {
public:
  // Unpacked blocks larger than this are refused; TensorFlow's have some 256 KiB.
  static constexpr std::size_t most_block_bytes = std::size_t{8} << 20;

  std::string open(std::span<const std::byte> file) {
    file_ = file;
    if (file.size() < table_layout::footer_bytes)
      return text("it is truncated: ", file.size(), " bytes, where the footer alone takes ",
                  table_layout::footer_bytes);
    const auto footer = file.last(table_layout::footer_bytes);
    std::uint64_t magic = 0;
    std::memcpy(&magic, footer.data() + footer.size() - sizeof magic, sizeof magic);
    if (magic != table_layout::magic) return "it does not end with the magic number of a table";
    detail::varint_source in(footer.first(footer.size() - sizeof magic));
    handle meta;
    meta.offset = in.varint(), meta.size = in.varint();
    index_.offset = in.varint(), index_.size = in.varint();
    if (in.bad() || !std::ranges::equal(footer, detail::table_footer(meta, index_))) return "its footer is damaged";
    // Nothing has a checksum here, but metaindex and index are always the last blocks.
    const auto ends_at = [](const handle& h, std::uint64_t end) {
      return h.size < end && h.offset == end - h.size - table_layout::trailer_bytes;
    };
    if (!ends_at(index_, file.size() - footer.size()) || !ends_at(meta, index_.offset))
      return "its footer does not give the places of the two blocks before it";
    // The metaindex names filters, which TensorFlow does not write and we have no use for: it only has to be whole.
    return each_of(meta, "metaindex", [](std::string_view, std::span<const std::byte>) { return std::string(); });
  }

  // Calls f(key, value) for each entry in order; both are views that end with the call. `f` gives what it has against
  // the entry, or an empty std::string; then the walk ends with that.
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

  // `last`: takes the block's last key.
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
