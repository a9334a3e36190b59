// The bodies of example.hpp.
#pragma once
#include "../base/body.hpp"
#include "example.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void write_feature(wire_writer& w, std::span<const float> values) {
  w.message(2, [&](wire_writer& list) { list.packed(1, values); });
}

GRADUS_BODY void write_feature(wire_writer& w, std::span<const std::int64_t> values) {
  w.message(3, [&](wire_writer& list) { list.packed(1, values); });
}

GRADUS_BODY void write_feature(wire_writer& w, std::span<const std::string_view> values) {
  w.message(1, [&](wire_writer& list) {
    for (const auto v : values) list.bytes(1, v);
  });
}

GRADUS_BODY void message_map::write(wire_writer& w) const {
  order_of_writing_.clear();
  for (std::size_t i = 0; i < used_; ++i) order_of_writing_.push_back(i);
  if (order_ == key_order::sorted)
    std::sort(order_of_writing_.begin(), order_of_writing_.end(),
              [&](std::size_t a, std::size_t b) { return entries_[a].key < entries_[b].key; });
  for (const std::size_t i : order_of_writing_)
    w.message(1, [&](wire_writer& e) {
      e.bytes(1, std::string_view(entries_[i].key));
      e.bytes(2, std::span<const std::byte>(entries_[i].value));
    });
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void example_builder::write(std::vector<std::byte>& out) const {
  wire_writer w(out);
  w.message(1, [&](wire_writer& features) { features_.write(features); });
}

GRADUS_BODY std::vector<std::byte> example_builder::bytes() const {
  std::vector<std::byte> out;
  write(out);
  return out;
}

GRADUS_BODY sequence_example_builder& sequence_example_builder::add_list(std::string_view key) {
  lists_.extend(key, [](wire_writer&) {});
  return *this;
}

GRADUS_BODY void sequence_example_builder::write(std::vector<std::byte>& out) const {
  context_.write(out);  // field 1 is Features in both messages
  if (lists_.size() == 0) return;
  wire_writer w(out);
  w.message(2, [&](wire_writer& lists) { lists_.write(lists); });
}

GRADUS_BODY std::vector<std::byte> sequence_example_builder::bytes() const {
  std::vector<std::byte> out;
  write(out);
  return out;
}

}  // namespace gradus
