// tf.train.Example and SequenceExample are messages of named lists of numbers or text; a record holds one message. This
// header makes them, parse_example.hpp reads them, and record_writer.hpp writes them into files.
// docs/formats/tfrecord.md describes the bytes.
//
//   example_builder e;
//   e.add_floats("x", {1, -2}).add_ints("y", {3}).add_text("s", {"hi"});
//   writer.write(e);
//   e.clear();                                    // keeps its memory
//
// The same calls always give the same bytes, since keys are written in the order in which they were added, or sorted.
// (TensorFlow writes a protobuf map, whose order differs from run to run.)
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../base/error.hpp"
#include "../store/wire.hpp"

namespace gradus::inline GRADUS_BUILD {

enum class key_order : std::uint8_t { as_added, sorted };

namespace detail {
// Writes one tf.train.Feature, which is a oneof of three lists. An empty list is written too, because it tells the
// kind.
void write_feature(wire_writer& w, std::span<const float> values);
void write_feature(wire_writer& w, std::span<const std::int64_t> values);
void write_feature(wire_writer& w, std::span<const std::string_view> values);

// Builds a map of messages. Each entry keeps its memory when the map is used again.
class message_map {
public:
  explicit message_map(key_order order) : order_(order) {}
  template <class Body>
  void add(std::string_view key, Body&& body) {
    for (std::size_t i = 0; i < used_; ++i)
      if (entries_[i].key == key)
        raise(status::already_exists, text("the example has \"", key, "\" already; a key holds one list"));
    if (used_ == entries_.size()) entries_.emplace_back();
    entry& e = entries_[used_];
    e.key = key;
    e.value.clear();
    {
      wire_writer w(e.value);
      body(w);
    }
    ++used_;  // if body raises, nothing is added
  }
  // Appends to the message of an entry, which is made if there is none.
  template <class Body>
  void extend(std::string_view key, Body&& body) {
    for (std::size_t i = 0; i < used_; ++i)
      if (entries_[i].key == key) {
        wire_writer w(entries_[i].value);
        body(w);
        return;
      }
    add(key, body);
  }
  void clear() { used_ = 0; }
  std::size_t size() const { return used_; }
  // Writes the entries, each as a field of number 1 that holds {1: key, 2: value}.
  void write(wire_writer& w) const;

private:
  struct entry {
    std::string key;
    std::vector<std::byte> value;
  };
  key_order order_;
  std::vector<entry> entries_;
  std::size_t used_ = 0;
  mutable std::vector<std::size_t> order_of_writing_;
};

// The functions that add the three kinds of lists, from a span, from a list in braces, or (text) from a single value.
// `Self` has `void take(key, values)`.
template <class Self>
class takes_lists {
public:
  Self& add_floats(std::string_view key, std::span<const float> v) { return take(key, v); }
  Self& add_floats(std::string_view key, std::initializer_list<float> v) {
    return take(key, std::span<const float>(v.begin(), v.size()));
  }
  Self& add_ints(std::string_view key, std::span<const std::int64_t> v) { return take(key, v); }
  Self& add_ints(std::string_view key, std::initializer_list<std::int64_t> v) {
    return take(key, std::span<const std::int64_t>(v.begin(), v.size()));
  }
  // The values may be any bytes: text, a picture, the memory of an array.
  Self& add_text(std::string_view key, std::span<const std::string_view> v) { return take(key, v); }
  Self& add_text(std::string_view key, std::initializer_list<std::string_view> v) {
    return take(key, std::span<const std::string_view>(v.begin(), v.size()));
  }
  Self& add_text(std::string_view key, std::string_view v) {
    return take(key, std::span<const std::string_view>(&v, 1));
  }
  Self& add_bytes(std::string_view key, std::span<const std::byte> v) {
    return add_text(key, std::string_view(reinterpret_cast<const char*>(v.data()), v.size()));
  }

private:
  template <class Values>
  Self& take(std::string_view key, const Values& v) {
    Self& self = static_cast<Self&>(*this);
    self.take(key, v);
    return self;
  }
};
}  // namespace detail

// Builds one tf.train.Example. The functions that add raise already_exists for a key that was added before, and
// invalid_argument beyond protobuf's 2 GiB.
class example_builder : public detail::takes_lists<example_builder> {
public:
  explicit example_builder(key_order order = key_order::as_added) : features_(order) {}

  void clear() { features_.clear(); }
  // Appends the message.
  void write(std::vector<std::byte>& out) const;
  std::vector<std::byte> bytes() const;

private:
  friend detail::takes_lists<example_builder>;
  void take(std::string_view key, const auto& values) {
    features_.add(key, [&](wire_writer& w) { detail::write_feature(w, values); });
  }
  detail::message_map features_;
};

// Builds one tf.train.SequenceExample: `context()` has the features of the whole sequence, and each list has one
// Feature for every step.
//
//   s.context().add_ints("length", {2});
//   s.add_floats("token", {1, 2}).add_floats("token", {3});       two steps of "token"
class sequence_example_builder : public detail::takes_lists<sequence_example_builder> {
public:
  explicit sequence_example_builder(key_order order = key_order::as_added) : context_(order), lists_(order) {}

  example_builder& context() { return context_; }
  // Adds a list without steps; steps may be added to it later.
  sequence_example_builder& add_list(std::string_view key);
  void clear() { context_.clear(), lists_.clear(); }
  // Appends the message.
  void write(std::vector<std::byte>& out) const;
  std::vector<std::byte> bytes() const;

private:
  friend detail::takes_lists<sequence_example_builder>;
  // Adds one step.
  void take(std::string_view key, const auto& values) {
    lists_.extend(
        key, [&](wire_writer& list) { list.message(1, [&](wire_writer& w) { detail::write_feature(w, values); }); });
  }
  example_builder context_;
  detail::message_map lists_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "example.ipp"
#endif
