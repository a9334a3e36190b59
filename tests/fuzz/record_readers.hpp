// The readers of TFRecord files and tf.train.Examples as functions of bytes (readers.hpp).
#pragma once
#include "gradus/input/example.hpp"
#include "gradus/input/tf_example.hpp"
#include "text_readers.hpp"

namespace fuzz {

// The first byte chooses the limit and what is said about compression.
inline bool read_tf_record(std::span<const std::byte> file) {
  return read_text_file(file, [](const auto& disk, unsigned choice, bool ignore) {
    return tf_record("f",
                     {.compression = static_cast<compression_type>(choice >> 1 & 3),
                      .ignore_errors = ignore,
                      .limits = {.record_bytes = choice % 2 == 0 ? std::uint64_t{1} << 20 : 20},
                      .buffer_bytes = 64},
                     disk);
  });
}

// As a batch, as components and as a sequence: the first two say the same.
inline bool read_example(std::span<const std::byte> file) {
  static const example_spec spec{
      {"x", fixed_len_feature{{2}, float32, 0.5}},    {"y", fixed_len_feature{{}, int64}},
      {"s", var_len_feature{feature_kind::text}},     {"v", var_len_feature{float32}},
      {"at", sparse_feature{"i", "v", float32, 100}}, {"t", fixed_len_sequence_feature{{2}, int64, true}}};
  static const example_spec lists{{"x", fixed_len_sequence_feature{{2}, float32}},
                                  {"y", var_len_feature{int64}},
                                  {"s", var_len_feature{feature_kind::text}}};
  const auto attempt = [](auto&& f) {
    try {
      f();
      return true;
    } catch (const error& e) {
      must_hold(e.kind() == status::data_loss || e.kind() == status::invalid_argument, e.what());
      return false;
    }
  };
  features batch;
  const std::span<const std::byte> twice[] = {file, file};
  const bool good = attempt([&] { batch = parse_example(twice, spec); });
  datum row;
  const components parts = example_components(spec);
  row.conform(parts);
  static detail::example_decoder decoder(std::make_shared<const example_spec>(spec));
  const bool as_components = attempt([&] { decoder.parse(file, {}, detail::memory_of(row)); });
  must_hold(good || !as_components, "components of what is no example");
  if (as_components) {
    must_hold(row.value<std::int64_t>("y") == batch["y"].ints.at(1), "another number as component");
    must_hold(row.values<float>("at").size() == batch["at"].places.size() / 2, "another number of values");
    must_hold(std::memcmp(row["x"].data, batch["x"].floats.data() + 2, 8) == 0, "other values as component");
  }
  if (good) must_hold(batch["x"].size() == 4 && batch["t"].size() <= 4 * file.size(), "more values than bytes");
  attempt([&] {
    const auto s = parse_single_sequence_example(file, example_spec{{"y", var_len_feature{int64}}}, lists);
    must_hold(s["x"].values.size() == static_cast<std::size_t>(2 * s["x"].steps), "steps of another size");
    must_hold(static_cast<std::size_t>(s["y"].steps) <= file.size(), "more steps than bytes");
  });
  return good;
}

// A forger's checksums: those of the records behind the first byte.
template <class Seal>
void seal_behind_first(std::vector<std::byte>& file, Seal seal) {
  if (file.empty()) return;
  std::vector<std::byte> rest(file.begin() + 1, file.end());
  seal(rest);
  std::copy(rest.begin(), rest.end(), file.begin() + 1);
}

inline std::vector<std::byte> sample_example() {
  example_builder e;
  e.add_floats("x", {1, -2}).add_ints("y", {3}).add_text("s", {"hi", ""}).add_floats("v", {0.5F, 0.25F});
  return e.add_ints("i", {9, 4}).add_ints("t", {1, -1, 300, 4}).bytes();
}

}  // namespace fuzz
