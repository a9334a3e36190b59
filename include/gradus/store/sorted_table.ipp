// The bodies of sorted_table.hpp.
#pragma once
#include "../base/body.hpp"
#include "sorted_table.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::vector<std::byte> table_footer(const table_handle& metaindex, const table_handle& index) {
  std::vector<std::byte> out;
  for (const auto& h : {metaindex, index}) put_varint(out, h.offset), put_varint(out, h.size);
  out.resize(table_layout::footer_bytes - sizeof table_layout::magic);
  put_fixed(out, table_layout::magic);
  return out;
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void table_writer::add(std::string_view key, std::span<const std::byte> value) {
  if (any_ && key <= last_)
    raise(status::invalid_argument, text("a table's keys increase; \"", key, "\" came after \"", last_, "\""));
  if (key.size() + value.size() >= 2 * layout_.block_bytes) end_block();
  if (pending_) end_index_entry(separator(last_, key));
  last_ = key, any_ = true;
  data_.add(key, value);
  if (data_.size() >= layout_.block_bytes) end_block();
}

GRADUS_BODY std::vector<std::byte> table_writer::finish() {
  end_block();
  block_builder meta(1);
  const handle metaindex = write(meta);
  if (pending_) end_index_entry(successor(last_));
  const handle index = write(index_);
  detail::put_bytes(out_, detail::table_footer(metaindex, index));
  return std::move(out_);
}

GRADUS_BODY void table_writer::block_builder::add(std::string_view key, std::span<const std::byte> value) {
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

GRADUS_BODY std::vector<std::byte> table_writer::block_builder::take() {
  for (const std::uint32_t at : restarts_) detail::put_fixed(bytes_, at);
  detail::put_fixed(bytes_, static_cast<std::uint32_t>(restarts_.size()));
  restarts_ = {0}, since_ = 0, last_.clear();
  return std::move(bytes_);
}

GRADUS_BODY void table_writer::end_block() {
  if (data_.empty()) return;
  block_ = write(data_);
  pending_ = true;  // its key in the index depends on the next block's first key
}

GRADUS_BODY void table_writer::end_index_entry(std::string_view key) {
  std::vector<std::byte> value;
  detail::put_varint(value, block_.offset), detail::put_varint(value, block_.size);
  index_.add(key, value);
  pending_ = false;
}

GRADUS_BODY table_writer::handle table_writer::write(block_builder& block) {
  std::vector<std::byte> contents = block.take();
  const handle at{out_.size(), contents.size()};
  contents.push_back(std::byte{0});
  detail::put_bytes(out_, contents);
  detail::put_fixed(out_, mask(crc32c(contents)));
  return at;
}

GRADUS_BODY std::string table_writer::separator(std::string_view last, std::string_view next) {
  const std::size_t common = std::min(last.size(), next.size());
  std::size_t i = 0;
  while (i < common && last[i] == next[i]) ++i;
  if (i < common) {
    const auto byte = static_cast<unsigned char>(last[i]);
    if (byte < 0xFF && byte + 1 < static_cast<unsigned char>(next[i])) return bumped(last, i);
  }
  return std::string(last);
}

GRADUS_BODY std::string table_writer::successor(std::string_view last) {
  const std::size_t i = last.find_first_not_of('\xff');
  return i == std::string_view::npos ? std::string(last) : bumped(last, i);
}

GRADUS_BODY std::string table_writer::bumped(std::string_view key, std::size_t i) {
  std::string out(key.substr(0, i + 1));
  ++out.back();
  return out;
}

}  // namespace gradus

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::string table_block::open(std::span<const std::byte> contents) {
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

GRADUS_BODY bool table_block::next(std::string& problem) {
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

GRADUS_BODY std::uint32_t table_block::next_restart() const {
  std::uint32_t at = 0;
  std::memcpy(&at, restarts_.data(), 4);
  return at;
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::string sorted_table::open(std::span<const std::byte> file) {
  file_ = file;
  if (file.size() < table_layout::footer_bytes)
    return text("it is truncated: ", file.size(), " bytes, where the footer alone takes ", table_layout::footer_bytes);
  const auto footer = file.last(table_layout::footer_bytes);
  std::uint64_t magic = 0;
  std::memcpy(&magic, footer.data() + footer.size() - sizeof magic, sizeof magic);
  if (magic != table_layout::magic) return "it does not end with the magic number of a table";
  detail::varint_source in(footer.first(footer.size() - sizeof magic));
  handle meta;
  meta.offset = in.varint(), meta.size = in.varint();
  index_.offset = in.varint(), index_.size = in.varint();
  if (in.bad() || !std::ranges::equal(footer, detail::table_footer(meta, index_))) return "its footer is damaged";
  // The footer has no checksum, but metaindex and index are always the last blocks.
  const auto ends_at = [](const handle& h, std::uint64_t end) {
    return h.size < end && h.offset == end - h.size - table_layout::trailer_bytes;
  };
  if (!ends_at(index_, file.size() - footer.size()) || !ends_at(meta, index_.offset))
    return "its footer does not give the places of the two blocks before it";
  // The metaindex names filters, which TensorFlow does not write and this library does not use: it only has to be
  // whole.
  return each_of(meta, "metaindex", [](std::string_view, std::span<const std::byte>) { return std::string(); });
}

}  // namespace gradus
