// This header reads one tf.train.Example in place, from the bytes of a record: it finds the lists of the wanted keys
// and reads their values. It copies nothing but values; malformed bytes are an error with the example's name.
#pragma once
#include "../base/build.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../base/error.hpp"
#include "../store/wire.hpp"
#include "example_spec.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

static_assert(std::endian::native == std::endian::little, "gradus: packed floats are copied as this machine has them");

// The destinations of values. into_vector appends them to a vector. into_array writes them into an array, and only
// counts those for which it has no room.
template <class Number>
struct into_vector {
  std::vector<Number>& out;
  void put(Number v) { out.push_back(v); }
  void put_all(const std::byte* from, std::size_t n) {
    if (n == 0) return;
    const std::size_t have = out.size();
    out.resize(have + n);
    std::memcpy(out.data() + have, from, n * sizeof(Number));
  }
};
template <class Number>
struct into_array {
  std::span<Number> out;
  std::size_t n = 0;
  void put(Number v) {
    if (n < out.size()) out[n] = v;
    ++n;
  }
  void put_all(const std::byte* from, std::size_t count) {
    if (n < out.size() && count != 0)
      std::memcpy(out.data() + n, from, std::min(count, out.size() - n) * sizeof(Number));
    n += count;
  }
};

// Each of these functions reads the values of one FloatList, Int64List or BytesList message, packed or not.
template <class Into>
void read_floats(wire_reader list, Into& to) {
  while (list.next()) switch (list.key()) {
    case field(1, wire::length): {
      const auto packed = list.bytes();
      if (packed.size() % sizeof(float) != 0)
        raise(status::data_loss, text("malformed protobuf message: ", packed.size(), " bytes of packed floats"));
      to.put_all(packed.data(), packed.size() / sizeof(float));
      break;
    }
    case field(1, wire::fixed32): to.put(list.float32()); break;
    default: break;
    }
}
template <class Into>
void read_ints(wire_reader list, Into& to) {
  while (list.next()) switch (list.key()) {
    case field(1, wire::length): {
      const auto packed = list.bytes();
      const std::byte *at = packed.data(), *const end = at + packed.size();
      while (at != end) {
        auto n = std::to_integer<std::uint64_t>(*at++);
        if (n >= 0x80) {
          n &= 0x7f;
          for (unsigned shift = 7;; shift += 7) {
            if (at == end || shift > 63)
              raise(status::data_loss, "malformed protobuf message: a packed number that does not end");
            const auto b = std::to_integer<std::uint64_t>(*at++);
            n |= (b & 0x7f) << shift;
            if (b < 0x80) break;
          }
        }
        to.put(static_cast<std::int64_t>(n));
      }
      break;
    }
    case field(1, wire::varint): to.put(list.integer()); break;
    default: break;
    }
}
template <class Put>
void read_texts(wire_reader list, Put&& put) {
  while (list.next())
    if (list.key() == field(1, wire::length)) put(list.string());
}

// The list in a Feature. If no kind is set there is no list, and the feature is missing. If several kinds are set, the
// last one counts; several pieces of one kind are one list.
class feature_message {
public:
  feature_message() = default;
  explicit feature_message(std::span<const std::byte> message);
  bool missing() const { return key_ == 0; }
  feature_kind kind() const;
  template <class Read>
  void each_list(Read&& read) const {
    if (pieces_ == 1) return read(wire_reader(list_));
    if (pieces_ > 1)
      for (wire_reader r(message_); r.next();)
        if (r.key() == key_) read(r.message());
  }

private:
  std::span<const std::byte> message_, list_;
  std::uint32_t key_ = 0;
  int pieces_ = 0;
};

// TensorFlow's names of the kinds, for the errors whose text is TensorFlow's.
constexpr std::string_view data_type(feature_kind k) {
  return k == feature_kind::float32 ? "float" : k == feature_kind::int64 ? "int64" : "string";
}
constexpr std::string_view data_list(feature_kind k) { return k == feature_kind::text ? "bytes" : data_type(k); }

// The example that an error is about. Error texts begin with it as TensorFlow's do.
struct example_place {
  std::string_view name = "<unknown>";
  std::int64_t index = 0;
  // Returns a better name, if set; it is called only when there is an error.
  std::string (*describe)(const void*) = nullptr;
  const void* about = nullptr;

  std::string shown_name() const { return describe != nullptr ? describe(about) : std::string(name); }
  std::string of(std::string_view key) const;
  [[noreturn]] void wrong_kind(std::string_view key, feature_kind expected, feature_kind found) const;
  [[noreturn]] void required(std::string_view key, feature_kind expected) const;
  [[noreturn]] void wrong_count(std::string_view key, feature_kind kind, std::size_t found, const extents& dims) const;
  [[noreturn]] void wrong_steps(std::string_view key, feature_kind kind, std::size_t found, const extents& dims) const;
  // Calls f(), and adds this place to its errors about malformed bytes.
  template <class F>
  void reading(F&& f) const {
#if defined(__cpp_exceptions)
    std::string problem;
    try {
      return f();
    } catch (const error_of<status::data_loss>& e) {
      problem = e.what();
    }
    raise(status::data_loss,
          text("Name: ", shown_name(), ", Index: ", index, ".  Could not parse example input: ", problem));
#else
    f();
#endif
  }
};

// The messages that a map holds for the keys of a spec: each Feature of a Features, or each FeatureList of a
// FeatureLists. If a key comes twice, the last one counts.
class wanted_messages {
public:
  explicit wanted_messages(const example_spec& spec) : spec_(&spec), found_(spec.keys().size()) {}

  void clear() { std::fill(found_.begin(), found_.end(), one{}); }
  // Reads a map: a message with entries {1: key, 2: value} in field 1.
  void add(wire_reader map);
  // Reads all maps in field `number` of a message, since official parsers merge them.
  void add_all(std::span<const std::byte> message, std::uint32_t number);
  bool has(std::size_t key) const { return found_[key].there; }
  std::span<const std::byte> message(std::size_t key) const { return found_[key].message; }
  feature_message feature(std::size_t key) const { return feature_message(found_[key].message); }

private:
  struct one {
    std::span<const std::byte> message;
    bool there = false;
  };
  const example_spec* spec_;
  std::vector<one> found_;
};

// Appends the values of `from` to the list of their kind in `to`; returns how many there are.
std::size_t append_values(const feature_message& from, feature& to);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "example_message.ipp"
#endif
