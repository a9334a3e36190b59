// parse_example turns serialized tf.train.Examples into a batch of named features, as TensorFlow's op of the same name
// does.
//
//   const features batch = parse_example(records, {{"x", fixed_len_feature{{2}, float32}},
//                                                  {"words", var_len_feature{feature_kind::text}}});
//   batch["x"].floats                               rows() * 2 values
//   batch["words"].begin(r), .end(r)                values of example r
//
// A record is a string, a span of bytes, or a datum whose first component holds its bytes. The spec decides the result:
//
//   fixed_len_feature            dense: dims for every example
//   var_len_feature              ragged: each example its own number
//   sparse_feature               ragged, with `places` in ascending order, and `width`
//   fixed_len_sequence_feature   dense: [steps of the longest, dims], the others padded with the default
//
// A feature is missing if its key is absent or its Feature has no list. If a key comes twice, the last one counts. Keys
// that the spec does not list are passed over. parse_example raises invalid_argument for a list of another kind,
// another number of values, or a feature that is missing and must not be, and data_loss for bytes that are not an
// Example. The messages are TensorFlow's, and have the example's number and the key. tf_example.hpp parses records in a
// pipeline for a trainer.
#pragma once
#include "../base/build.hpp"

#include <algorithm>  // the concepts of ranges; <ranges> has the views, too
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "example_message.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

inline std::span<const std::byte> message_of(std::span<const std::byte> record) { return record; }
inline std::span<const std::byte> message_of(std::string_view record) { return std::as_bytes(std::span(record)); }
inline std::span<const std::byte> message_of(const char* record) { return message_of(std::string_view(record)); }
std::span<const std::byte> message_of(const datum& record);

// Sorts the values of a feature from number `first` on, and their places, into ascending order of the places.
void sort_by_place(feature& f, std::size_t first);

// Appends the values of the default, `times` times.
void append_default(feature& to, const feature& value, std::int64_t times);

// Appends to `to` the values that one example has for one entry of a spec, behind those of the examples before.
void append_entry(const example_spec::entry& e, const wanted_messages& found, const example_place& place, feature& to);

feature begin_feature(const example_spec::entry& e);

// Makes ragged steps dense: pads each example to the number of steps of the longest one.
void fill_up(feature& f, const example_spec::entry& e);

// Parses records one after the other into a batch.
class example_batch {
public:
  explicit example_batch(const example_spec& spec);
  // Reserves memory for the dense values of `rows` examples.
  void expect(std::size_t rows);
  void add(std::span<const std::byte> message, const example_place& place);
  features finish();

private:
  const example_spec& spec_;
  wanted_messages found_;
  std::vector<feature> list_;
  std::int64_t rows_ = 0;
};

}  // namespace detail

// Parses a batch of records. Error messages call the records by `names`, one for each (TensorFlow's example_names).
template <std::ranges::input_range Records>
features parse_example(const Records& records, const example_spec& spec, std::span<const std::string> names = {}) {
  detail::example_batch found(spec);
  if constexpr (std::ranges::sized_range<const Records>) found.expect(std::ranges::size(records));
  std::int64_t index = 0;
  for (const auto& r : records) {
    detail::example_place place{.index = index};
    if (static_cast<std::size_t>(index) < names.size()) place.name = names[static_cast<std::size_t>(index)];
    found.add(detail::message_of(r), place);
    ++index;
  }
  return found.finish();
}
// Parses one record into a batch of one example.
template <class Record>
features parse_single_example(const Record& record, const example_spec& spec, std::string_view name = "<unknown>") {
  detail::example_batch found(spec);
  found.add(detail::message_of(record), {.name = name});
  return found.finish();
}

// A feature list of a tf.train.SequenceExample. Step s has the values [values.begin(s), values.end(s)).
struct feature_steps {
  std::int64_t steps = 0;
  feature values;
};
struct sequence_features {
  features context{1};
  std::vector<feature_steps> lists;

  // Raises not_found, with the known names.
  const feature_steps& operator[](std::string_view name) const;
};

// Parses one tf.train.SequenceExample. In `lists` a fixed_len_sequence_feature has `dims` values at every step, and a
// var_len_feature any number; the other kinds of features are only for the context. A missing list has no steps if that
// is allowed, and is an error if not.
template <class Record>
sequence_features parse_single_sequence_example(const Record& record, const example_spec& context,
                                                const example_spec& lists, std::string_view name = "<unknown>") {
  using kind_of_entry = example_spec::shape_of;
  sequence_features out;
  const auto message = detail::message_of(record);
  detail::example_batch one(context);
  one.add(message, {.name = name});
  out.context = one.finish();

  detail::example_place place{.name = name};
  detail::wanted_messages found(lists);
  place.reading([&] { found.add_all(message, 2); });
  for (const auto& e : lists.entries()) {
    if (e.how == kind_of_entry::fixed || e.how == kind_of_entry::sparse)
      raise(status::invalid_argument,
            text("feature list \"", e.name, "\": expected a fixed_len_sequence_feature or a var_len_feature"));
    if (!found.has(e.key) && !e.may_be_missing)
      raise(status::invalid_argument, text("Name: ", name, ", Feature list '", e.name,
                                           "' is required but could not be found.  Did you mean to allow_missing?"));
    feature_steps list;
    list.values = {.name = e.name, .kind = e.kind, .dims = e.dims};
    if (e.how == kind_of_entry::var) list.values.dims = {any_extent}, list.values.splits = {0};
    place.index = 0;
    place.reading([&] {
      for (wire_reader steps(found.message(e.key)); steps.next();) {
        if (steps.key() != field(1, wire::length)) continue;
        const detail::feature_message step(steps.bytes());
        if (!step.missing() && step.kind() != e.kind) place.wrong_kind(e.name, e.kind, step.kind());
        const auto n = detail::append_values(step, list.values);
        if (e.how == kind_of_entry::var)
          list.values.splits.push_back(static_cast<std::int64_t>(list.values.size()));
        else if (static_cast<std::int64_t>(n) != e.count)
          place.wrong_count(e.name, e.kind, n, e.dims);
        place.index = ++list.steps;
      }
    });
    out.lists.push_back(std::move(list));
  }
  return out;
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "parse_example.ipp"
#endif
