// The bodies of parse_example.hpp.
#pragma once
#include "../base/body.hpp"
#include "../base/sort.hpp"
#include "parse_example.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::span<const std::byte> message_of(const datum& record) {
  const auto chars = record.values<std::uint8_t>(0);
  return std::as_bytes(chars);
}

GRADUS_BODY void sort_by_place(feature& f, std::size_t first) {
  const auto tail = [first](const auto& list) {
    return std::remove_cvref_t<decltype(list)>(list.begin() + static_cast<std::ptrdiff_t>(first), list.end());
  };
  if (std::is_sorted(f.places.begin() + static_cast<std::ptrdiff_t>(first), f.places.end())) return;
  std::vector<std::size_t> order(f.places.size() - first);
  std::iota(order.begin(), order.end(), std::size_t{0});
  detail::sort_stably(order, [&](auto a, auto b) { return f.places[first + a] < f.places[first + b]; });
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

GRADUS_BODY void append_default(feature& to, const feature& value, std::int64_t times) {
  for (; times > 0; --times) {
    to.floats.insert(to.floats.end(), value.floats.begin(), value.floats.end());
    to.ints.insert(to.ints.end(), value.ints.begin(), value.ints.end());
    for (std::size_t i = 0; i < value.texts.size(); ++i) to.texts.push_back(value.texts[i]);
  }
}

GRADUS_BODY void append_entry(const example_spec::entry& e, const wanted_messages& found, const example_place& place,
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

GRADUS_BODY feature begin_feature(const example_spec::entry& e) {
  feature f{.name = e.name, .kind = e.kind, .dims = e.dims, .width = e.width};
  if (e.how == example_spec::shape_of::fixed) return f;
  f.splits = {0};
  if (e.how != example_spec::shape_of::sequence) f.dims = {any_extent};
  return f;
}

GRADUS_BODY void fill_up(feature& f, const example_spec::entry& e) {
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

GRADUS_BODY example_batch::example_batch(const example_spec& spec) : spec_(spec), found_(spec) {
  for (const auto& e : spec.entries()) {
    if (e.how == example_spec::shape_of::sequence && !e.may_be_missing)
      raise(status::invalid_argument, text("feature \"", e.name,
                                           "\": Unsupported: FixedLenSequenceFeature requires allow_missing to be "
                                           "True."));
    list_.push_back(begin_feature(e));
  }
}

GRADUS_BODY void example_batch::expect(std::size_t rows) {
  for (std::size_t i = 0; i < list_.size(); ++i) {
    const auto& e = spec_.entries()[i];
    if (e.how != example_spec::shape_of::fixed) continue;
    if (e.kind == feature_kind::float32) list_[i].floats.reserve(rows * static_cast<std::size_t>(e.count));
    if (e.kind == feature_kind::int64) list_[i].ints.reserve(rows * static_cast<std::size_t>(e.count));
  }
}

GRADUS_BODY void example_batch::add(std::span<const std::byte> message, const example_place& place) {
  place.reading([&] {
    found_.clear();
    found_.add_all(message, 1);
    for (std::size_t i = 0; i < list_.size(); ++i) append_entry(spec_.entries()[i], found_, place, list_[i]);
  });
  ++rows_;
}

GRADUS_BODY features example_batch::finish() {
  features out(rows_);
  for (std::size_t i = 0; i < list_.size(); ++i) {
    if (spec_.entries()[i].how == example_spec::shape_of::sequence) fill_up(list_[i], spec_.entries()[i]);
    out.add(std::move(list_[i]));
  }
  return out;
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY const feature_steps& sequence_features::operator[](std::string_view name) const {
  std::string names;
  for (const auto& l : lists) {
    if (l.values.name == name) return l;
    names += text(names.empty() ? "" : ", ", l.values.name);
  }
  raise(status::not_found,
        text("no feature list is called \"", name, "\"; there are ", names.empty() ? "none" : names));
}

}  // namespace gradus
