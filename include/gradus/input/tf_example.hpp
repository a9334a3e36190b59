// tf_example gives tf.train.Examples in TFRecord files as elements that a trainer takes.
//
//   auto input = tf_example({"train-0.tfrecord", "train-1.tfrecord"}, {{"image", fixed_len_feature{{784}, float32}},
//                                                                      {"label", fixed_len_feature{{}, int64}}})
//                    .shuffle(10000, 7)
//                    .repeat()
//                    .batch(128);                       // parsed straight into the batch
//
// Components, by the spec (example_spec.hpp):
//
//   fixed_len_feature            float32 or int64 of its extents; text of one string: uint8 [any_extent]
//   var_len_feature              float32 or int64 [any_extent]; text: uint8 [any_extent], one string or none (empty)
//   fixed_len_sequence_feature   float32 or int64 [any_extent, its extents]; padded_batch fills up
//   sparse_feature               its values [any_extent], and "<name>_indices" int64 [any_extent]
//
// A dataset whose elements are records, from any source, is parsed by one of these:
//
//   records.apply(parse_example_dataset(spec))                                            TensorFlow's name for it
//   records.map(example_components(spec), example_parser(spec), {.parallel = 4})          by several threads
//   const features batch = parse_example_batch(records, 128, spec)                        for feature columns
//
// An example that cannot be parsed is an error (invalid_argument or data_loss; see parse_example.hpp), which names the
// file, the record and the byte, and the next pull goes on behind it; with ignore_errors the example is only counted.
// The rows of a batch that come before it are lost with it, as in TensorFlow.
#pragma once
#include "../base/build.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parse_example.hpp"
#include "tf_record.hpp"

namespace gradus::inline GRADUS_BUILD {

// Returns the components of the elements that examples become. Raises invalid_argument for a text feature of more than
// one string, and for a name that comes twice.
components example_components(const example_spec& spec);

namespace detail {

// Parses one example after the other into components.
class example_decoder {
public:
  explicit example_decoder(std::shared_ptr<const example_spec> spec) : spec_(std::move(spec)), found_(*spec_) {}

  // `memory(k, extents)` returns where component k is written.
  template <class Memory>
  void parse(std::span<const std::byte> message, const example_place& place, Memory&& memory) {
    place.reading([&] {
      found_.clear();
      found_.add_all(message, 1);
      std::size_t k = 0;
      for (const auto& e : spec_->entries()) {
        write(e, place, k, memory);
        k += e.how == example_spec::shape_of::sparse ? 2 : 1;
      }
    });
  }

private:
  template <class Memory>
  void write(const example_spec::entry& e, const example_place& place, std::size_t k, Memory&& memory) {
    using shape_of = example_spec::shape_of;
    if (e.how == shape_of::fixed && e.kind != feature_kind::text) {
      const feature_message m = found_.feature(e.key);
      std::byte* const to = memory(k, e.dims);
      if (m.missing()) {
        if (!e.may_be_missing) place.required(e.name, e.kind);
        const auto n = static_cast<std::size_t>(e.count);
        if (n == 0) return;
        if (e.kind == feature_kind::float32)
          std::memcpy(to, e.default_value.floats.data(), n * sizeof(float));
        else
          std::memcpy(to, e.default_value.ints.data(), n * sizeof(std::int64_t));
        return;
      }
      if (m.kind() != e.kind) place.wrong_kind(e.name, e.kind, m.kind());
      const std::size_t n =
          e.kind == feature_kind::float32
              ? read_array<float>(m, e, to, [](auto list, auto& out) { read_floats(list, out); })
              : read_array<std::int64_t>(m, e, to, [](auto list, auto& out) { read_ints(list, out); });
      if (n != static_cast<std::size_t>(e.count)) place.wrong_count(e.name, e.kind, n, e.dims);
      return;
    }
    row_.kind = e.kind;
    row_.floats.clear(), row_.ints.clear(), row_.texts.clear(), row_.places.clear(), row_.splits.clear();
    append_entry(e, found_, place, row_);
    const auto n = static_cast<std::int64_t>(row_.size());
    if (e.kind == feature_kind::text) {
      if (n > 1)
        raise(status::invalid_argument,
              text(place.of(e.name), "expected one string, found ", n, "; parse_example reads several"));
      const std::string_view s = n == 0 ? std::string_view() : row_.texts[0];
      copy(s.data(), s.size(), memory(k, {static_cast<std::int64_t>(s.size())}));
      return;
    }
    extents dims{n};
    if (e.how == shape_of::sequence) dims = with_lead(n / e.count, e.dims);
    std::byte* const to = memory(k, dims);
    if (e.kind == feature_kind::float32)
      copy(row_.floats.data(), row_.floats.size() * sizeof(float), to);
    else
      copy(row_.ints.data(), row_.ints.size() * sizeof(std::int64_t), to);
    if (e.how == shape_of::sparse)
      copy(row_.places.data(), row_.places.size() * sizeof(std::int64_t), memory(k + 1, {n}));
  }
  template <class Number, class Read>
  static std::size_t read_array(const feature_message& m, const example_spec::entry& e, std::byte* to, Read&& read) {
    into_array<Number> out{{reinterpret_cast<Number*>(to), static_cast<std::size_t>(e.count)}};
    m.each_list([&](wire_reader list) { read(list, out); });
    return out.n;
  }
  static void copy(const void* from, std::size_t bytes, std::byte* to);

  std::shared_ptr<const example_spec> spec_;
  wanted_messages found_;
  feature row_;  // keeps its memory
};

inline auto memory_of(datum& d) {
  return [&d](std::size_t k, const extents& dims) { return d.resize(k, dims).mutable_data(); };
}

}  // namespace detail

// A function for map. It parses the record in the first component into the components of the spec.
class example_parser {
public:
  explicit example_parser(example_spec spec) : spec_(std::make_shared<const example_spec>(std::move(spec))) {}
  void operator()(const datum& from, datum& to) const;

private:
  std::shared_ptr<const example_spec> spec_;
};

// Gives the examples of a dataset of records.
template <dataset Source>
class parsed_examples final : public composable<parsed_examples<Source>> {
public:
  // Raises invalid_argument if the source's elements are not records.
  parsed_examples(Source source, example_spec spec, bool ignore_errors = false)
      : source_(std::move(source)),
        spec_(example_components(spec)),
        decoder_(std::make_shared<const example_spec>(std::move(spec))),
        ignore_errors_(ignore_errors) {
    const components& from = source_.element_spec();
    if (batched_dataset<Source> || from.size() != 1 || from[0].type != uint8 || from[0].dims.rank != 1)
      raise(status::invalid_argument, text("parse_example: expected records, one component of uint8 [n], found ",
                                           to_text(from), batched_dataset<Source> ? ", in batches" : ""));
  }

  const components& element_spec() const { return spec_; }
  bool pull(datum& out) {
    return parse_next([&](auto parse) {
      out.conform(spec_);
      parse(detail::memory_of(out));
    });
  }
  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
    if (out.empty()) {
      std::int64_t passed = 0;
      while (passed < n && pull(passed_over_)) ++passed;
      return passed;
    }
    std::int64_t done = 0;
    const auto into_row = [&](std::size_t k, const extents&) { return detail::row_of(out[k], spec_[k], first + done); };
    while (done < n && parse_next([&](auto parse) { parse(into_row); })) ++done;
    return done;
  }
  void rewind() {
    source_.rewind();
    read_ = 0;
  }
  // Returns the number of examples that ignore_errors left out, and of records that the source left out.
  std::int64_t skipped() const {
    if constexpr (requires { source_.skipped(); })
      return skipped_ + source_.skipped();
    else
      return skipped_;
  }
  std::string external_state() const { return source_.external_state(); }
  void define(std::string& to) const {
    source_.define(to);
    to += text(".parse_example(", to_text(spec_), ")");
  }
  void write(position_writer& to) const {
    to.number(read_);
    to.number(skipped_);
    source_.write(to);
  }
  void read(position_reader& from) {
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    const auto read = from.number(0, most, "the number of records read");
    const auto skipped = from.number(0, most, "the number of examples skipped");
    source_.read(from);
    if (from.apply()) read_ = read, skipped_ = skipped;
  }

private:
  // Finds the next example that can be parsed, and calls use(parse), where parse(memory) parses it. Returns false at
  // the end.
  template <class Use>
  bool parse_next(Use&& use) {
    for (std::span<const std::byte> record; next_record(record);) {
      detail::example_place place{.index = read_++};
      if constexpr (requires { source_.place(); }) {
        place.describe = [](const void* s) { return static_cast<const Source*>(s)->place(); };
        place.about = &source_;
      }
      const auto parse = [&](auto&& memory) { decoder_.parse(record, place, memory); };
      if (!ignore_errors_) return use(parse), true;
      try {
        return use(parse), true;
      } catch (const error& e) {
        if (e.kind() != status::invalid_argument && e.kind() != status::data_loss) throw;
        ++skipped_;
      }
    }
    return false;
  }
  bool next_record(std::span<const std::byte>& record) {
    if constexpr (requires { source_.next_record(record); }) {
      return source_.next_record(record);
    } else {
      if (!detail::read_unit(source_, record_)) return false;
      record = detail::message_of(record_);
      return true;
    }
  }

  Source source_;
  components spec_;
  detail::example_decoder decoder_;
  bool ignore_errors_ = false;
  std::int64_t read_ = 0, skipped_ = 0;
  datum record_, passed_over_;  // buffers; not part of the position
};

// Raises the errors of example_components.
parsed_examples<tf_record_dataset> tf_example(file_list files, example_spec spec, const tf_record_options& options = {},
                                              const any_file_system& fs = {});

// Options of parse_example_dataset, which returns a stage for `apply` that parses records.
struct example_parsing {
  bool ignore_errors = false;
};
inline auto parse_example_dataset(example_spec spec, const example_parsing& how = {}) {
  return [spec = std::move(spec), how](auto&& records) {
    using source = std::remove_cvref_t<decltype(records)>;
    return parsed_examples<source>(std::forward<decltype(records)>(records), spec, how.ignore_errors);
  };
}

// Reads the next n records at most, and returns them as a batch of features. At the end the batch has no rows.
template <dataset Source>
features parse_example_batch(Source& records, std::int64_t n, const example_spec& spec) {
  detail::example_batch found(spec);
  datum record;
  for (detail::example_place place; place.index < n && detail::read_unit(records, record); ++place.index) {
    if constexpr (requires { records.place(); }) {
      place.describe = [](const void* s) { return static_cast<const Source*>(s)->place(); };
      place.about = &records;
    }
    found.add(detail::message_of(record), place);
  }
  return found.finish();
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "tf_example.ipp"
#endif
