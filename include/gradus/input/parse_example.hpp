// parse_example: serialized tf.train.Examples become a batch of named features, as TensorFlow's op of this name does
// it.
//
//   const features batch = parse_example(records, {{"x", fixed_len_feature{{2}, float32}},
//                                                  {"words", var_len_feature{feature_kind::text}}});
//   batch["x"].floats                               rows() * 2 values
//   batch["words"].begin(r), .end(r)                values of example r
//
// A record is a string, a span of bytes, or a datum whose first component is its bytes. What comes out, by spec:
//
//   fixed_len_feature            dense: dims for every example
//   var_len_feature              ragged: each example its own number
//   sparse_feature               ragged, with `places` in ascending order, and `width`
//   fixed_len_sequence_feature   dense: [steps of the longest, dims], the others filled up with the default
//
// A key that is absent, or a Feature without a list, is missing; of a key that comes twice the last counts; keys that
// nobody wants are passed over. Errors, in TensorFlow's words, name the example's number and the key: invalid_argument
// for a list of another kind, another number of values, or one that is missing and must not be; data_loss for bytes
// that are no Example. To parse records on their way to a trainer: tf_example.hpp.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "example_message.hpp"

namespace gradus {

namespace detail {

inline std::span<const std::byte> message_of(std::span<const std::byte> record) { return record; }
inline std::span<const std::byte> message_of(std::string_view record) { return std::as_bytes(std::span(record)); }
inline std::span<const std::byte> message_of(const char* record) { return message_of(std::string_view(record)); }
inline std::span<const std::byte> message_of(const datum& record) {
  const auto chars = record.values<std::uint8_t>(0);
  return std::as_bytes(chars);
}

// Values `first`... of a feature into ascending order of their places, beginning at `first_place`.
inline void sort_by_place(feature& f, std::size_t first) {
  const auto tail = [first](const auto& list) {
    return std::remove_cvref_t<decltype(list)>(list.begin() + static_cast<std::ptrdiff_t>(first), list.end());
  };
  if (std::is_sorted(f.places.begin() + static_cast<std::ptrdiff_t>(first), f.places.end())) return;
  std::vector<std::size_t> order(f.places.size() - first);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return f.places[first + a] < f.places[first + b]; });
  const auto arrange = [&](auto& list) {
    const auto old = tail(list);
    for (std::size_t i = 0; i < order.size(); ++i) list[first + i] = old[order[i]];
  };
  arrange(f.places);
  if (f.kind == feature_kind::float32) return arrange(f.floats);
  if (f.kind == feature_kind::int64) return arrange(f.ints);
  std::vector<std::string> old;
  for (std::size_t i = first; i < f.texts.size(); ++i) old.emplace_back(f.texts[i]);
  f.texts.cut(first);
  for (const std::size_t i : order) f.texts.push_back(old[i]);
}

// The values of the default, n times over.
inline void append_default(feature& to, const feature& value, std::int64_t times) {
  for (; times > 0; --times) {
    to.floats.insert(to.floats.end(), value.floats.begin(), value.floats.end());
    to.ints.insert(to.ints.end(), value.ints.begin(), value.ints.end());
    for (std::size_t i = 0; i < value.texts.size(); ++i) to.texts.push_back(value.texts[i]);
  }
}

// One entry of a spec, as one example has it, behind those of the examples before.
inline void append_entry(const example_spec::entry& e, const wanted_messages& found, const example_place& place,
                         feature& to) {
  const auto append = [&](const feature_message& from, feature& list) -> std::size_t {
    if (from.missing()) return 0;
    if (from.kind() != list.kind) place.wrong_kind(e.name, list.kind, from.kind());
    return append_values(from, list);
  };
  const feature_message values = found.feature(e.key);
  if (values.missing() && !e.may_be_missing) place.required(e.name, e.kind);
  switch (e.how) {
  case example_spec::shape_of::fixed:
    if (values.missing())
      append_default(to, e.default_value, 1);
    else if (const auto n = append(values, to); static_cast<std::int64_t>(n) != e.count)
      place.wrong_count(e.name, e.kind, n, e.dims);
    return;
  case example_spec::shape_of::var: append(values, to); break;
  case example_spec::shape_of::sequence:
    if (const auto n = append(values, to); static_cast<std::int64_t>(n) % e.count != 0)
      place.wrong_steps(e.name, e.kind, n, e.dims);
    break;
  case example_spec::shape_of::sparse: {
    const std::size_t first = to.places.size();
    feature places{.name = {}, .kind = feature_kind::int64};
    std::swap(places.ints, to.places);
    const auto n = append(found.feature(e.index_key), places);
    std::swap(places.ints, to.places);
    if (const auto have = append(values, to); have != n)
      raise(status::invalid_argument,
            text(place.of(e.name), "expected a place for each of its ", have, " values, found ", n, " places"));
    for (std::size_t i = first; i < to.places.size(); ++i)
      if (to.places[i] < 0 || to.places[i] >= e.width)
        raise(status::invalid_argument, text(place.of(e.name), "expected places from 0 to ", e.width - 1, ", found ",
                                             to.places[i], "; is its size right?"));
    sort_by_place(to, first);
    break;
  }
  }
  to.splits.push_back(static_cast<std::int64_t>(to.size()));
}

inline feature begin_feature(const example_spec::entry& e) {
  feature f{.name = e.name, .kind = e.kind, .dims = e.dims, .width = e.width};
  if (e.how == example_spec::shape_of::fixed) return f;
  f.splits = {0};
  if (e.how != example_spec::shape_of::sequence) f.dims = {any_extent};
  return f;
}

// Ragged steps become dense ones, as many as the longest has.
inline void fill_up(feature& f, const example_spec::entry& e) {
  const auto rows = static_cast<std::int64_t>(f.splits.size()) - 1;
  std::int64_t longest = 0;
  for (std::int64_t r = 0; r < rows; ++r) longest = std::max(longest, static_cast<std::int64_t>(f.end(r) - f.begin(r)));
  feature out{.name = f.name, .kind = f.kind, .dims = with_lead(longest / e.count, e.dims)};
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::size_t i = f.begin(r); i < f.end(r); ++i) switch (f.kind) {
      case feature_kind::float32: out.floats.push_back(f.floats[i]); break;
      case feature_kind::int64: out.ints.push_back(f.ints[i]); break;
      case feature_kind::text: out.texts.push_back(f.texts[i]); break;
      }
    append_default(out, e.default_value, longest - static_cast<std::int64_t>(f.end(r) - f.begin(r)));
  }
  f = std::move(out);
}

// Records one after the other, into a batch.
class example_batch {
public:
  explicit example_batch(const example_spec& spec) : spec_(spec), found_(spec) {
    for (const auto& e : spec.entries()) {
      if (e.how == example_spec::shape_of::sequence && !e.may_be_missing)
        raise(status::invalid_argument, text("feature \"", e.name,
                                             "\": Unsupported: FixedLenSequenceFeature requires allow_missing to be "
                                             "True."));
      list_.push_back(begin_feature(e));
    }
  }
  // Room for the dense values of so many examples.
  void expect(std::size_t rows) {
    for (std::size_t i = 0; i < list_.size(); ++i) {
      const auto& e = spec_.entries()[i];
      if (e.how != example_spec::shape_of::fixed) continue;
      if (e.kind == feature_kind::float32) list_[i].floats.reserve(rows * static_cast<std::size_t>(e.count));
      if (e.kind == feature_kind::int64) list_[i].ints.reserve(rows * static_cast<std::size_t>(e.count));
    }
  }
  void add(std::span<const std::byte> message, const example_place& place) {
    place.reading([&] {
      found_.clear();
      found_.add_all(message, 1);
      for (std::size_t i = 0; i < list_.size(); ++i) append_entry(spec_.entries()[i], found_, place, list_[i]);
    });
    ++rows_;
  }
  features finish() {
    features out(rows_);
    for (std::size_t i = 0; i < list_.size(); ++i) {
      if (spec_.entries()[i].how == example_spec::shape_of::sequence) fill_up(list_[i], spec_.entries()[i]);
      out.add(std::move(list_[i]));
    }
    return out;
  }

private:
  const example_spec& spec_;
  wanted_messages found_;
  std::vector<feature> list_;
  std::int64_t rows_ = 0;
};

}  // namespace detail

// `names`, one for each record, are what errors call them (TensorFlow's example_names).
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
// Of one record: a batch of one example.
template <class Record>
features parse_single_example(const Record& record, const example_spec& spec, std::string_view name = "<unknown>") {
  detail::example_batch found(spec);
  found.add(detail::message_of(record), {.name = name});
  return found.finish();
}

// A feature list of a tf.train.SequenceExample: values of step s are [values.begin(s), values.end(s)).
struct feature_steps {
  std::int64_t steps = 0;
  feature values;
};
struct sequence_features {
  features context{1};
  std::vector<feature_steps> lists;

  // Error: not_found, with the names that there are.
  const feature_steps& operator[](std::string_view name) const {
    std::string names;
    for (const auto& l : lists) {
      if (l.values.name == name) return l;
      names += text(names.empty() ? "" : ", ", l.values.name);
    }
    raise(status::not_found,
          text("no feature list is called \"", name, "\"; there are ", names.empty() ? "none" : names));
  }
};

// One tf.train.SequenceExample. In `lists` a fixed_len_sequence_feature has `dims` values at every step, a
// var_len_feature any number; the others belong into the context. A list that is missing has no steps where that is
// allowed, else it is an error.
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
