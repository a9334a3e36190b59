// The bodies of example_message.hpp.
#pragma once
#include "../base/body.hpp"
#include "example_message.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY feature_message::feature_message(std::span<const std::byte> message) : message_(message) {
  for (wire_reader r(message); r.next();) {
    if (r.type() != wire::length || r.number() > 3) continue;
    pieces_ = r.key() == key_ ? pieces_ + 1 : 1;
    key_ = r.key();
    list_ = r.bytes();
  }
}

GRADUS_BODY feature_kind feature_message::kind() const {
  return key_ == field(1, wire::length)   ? feature_kind::text
         : key_ == field(2, wire::length) ? feature_kind::float32
                                          : feature_kind::int64;
}

GRADUS_BODY std::string example_place::of(std::string_view key) const {
  return text("Name: ", shown_name(), ", Key: ", key, ", Index: ", index, ".  ");
}

GRADUS_BODY void example_place::wrong_kind(std::string_view key, feature_kind expected, feature_kind found) const {
  raise(status::invalid_argument, text(of(key), "Data types don't match. Data type: ", data_type(found),
                                       " but expected type: ", data_type(expected)));
}

GRADUS_BODY void example_place::required(std::string_view key, feature_kind expected) const {
  raise(status::invalid_argument, text("Name: ", shown_name(), ", Feature: ", key, " (data type: ", data_type(expected),
                                       ") is required but could not be found.  Index: ", index,
                                       ".  Give it a default_value if it may be missing"));
}

GRADUS_BODY void example_place::wrong_count(std::string_view key, feature_kind kind, std::size_t found,
                                            const extents& dims) const {
  raise(status::invalid_argument, text(of(key), "Number of ", data_list(kind), " values != expected.  Values size: ",
                                       found, " but output shape: ", to_text(dims)));
}

GRADUS_BODY void example_place::wrong_steps(std::string_view key, feature_kind kind, std::size_t found,
                                            const extents& dims) const {
  raise(status::invalid_argument,
        text(of(key), "Number of ", data_list(kind), " values is not a multiple of stride length. Saw ", found,
             " values but output shape is: ", to_text(dims)));
}

GRADUS_BODY void wanted_messages::add(wire_reader map) {
  while (map.next()) {
    if (map.key() != field(1, wire::length)) continue;
    std::string_view key;
    std::span<const std::byte> value;
    for (wire_reader entry = map.message(); entry.next();) switch (entry.key()) {
      case field(1, wire::length): key = entry.string(); break;
      case field(2, wire::length): value = entry.bytes(); break;
      default: break;
      }
    if (const auto k = spec_->find(key); k >= 0) found_[static_cast<std::size_t>(k)] = {value, true};
  }
}

GRADUS_BODY void wanted_messages::add_all(std::span<const std::byte> message, std::uint32_t number) {
  for (wire_reader r(message); r.next();)
    if (r.key() == field(number, wire::length)) add(r.message());
}

GRADUS_BODY std::size_t append_values(const feature_message& from, feature& to) {
  const std::size_t before = to.size();
  from.each_list([&](wire_reader list) {
    switch (to.kind) {
    case feature_kind::float32: {
      into_vector<float> out{to.floats};
      return read_floats(list, out);
    }
    case feature_kind::int64: {
      into_vector<std::int64_t> out{to.ints};
      return read_ints(list, out);
    }
    case feature_kind::text: return read_texts(list, [&](std::string_view s) { to.texts.push_back(s); });
    }
  });
  return to.size() - before;
}

}  // namespace gradus::detail
