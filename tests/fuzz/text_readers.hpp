// The readers of text and of arrays as functions of bytes (readers.hpp). Of text, the file's first byte chooses options
// and the rest is its content.
#pragma once
#include <string>
#include <vector>

#include "gradus/input/any_dataset.hpp"
#include "gradus/input/criteo.hpp"
#include "gradus/input/csv.hpp"
#include "gradus/input/libsvm.hpp"
#include "gradus/input/npy.hpp"
#include "gradus/input/text_line.hpp"
#include "gradus/testing/faulty_files.hpp"

namespace fuzz {
using namespace gradus;

inline void must_hold(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

// Reads all of it: strictly, where errors come between elements; with ignore_errors, where they do not; and the latter
// once more, from a position in the middle. All see the same elements. True if there were no errors.
template <class Make>
bool read_text_file(std::span<const std::byte> file, Make make) {
  const testing::faulty_files disk;
  const auto content = file.empty() ? file : file.subspan(1);
  const unsigned choice = file.empty() ? 0 : std::to_integer<unsigned>(file[0]);
  publish(disk, "f", byte_pieces(&content, 1));
  const std::size_t most = content.size() * most_inflation + 2;  // records have a byte at least

  std::vector<datum> good;
  std::size_t errors = 0, calls = 0;
  any_dataset strict = make(disk, choice, false);
  for (datum e;; ++calls) {
    must_hold(calls <= most, "more records than bytes");
    try {
      if (!strict.pull(e)) break;
      if (good.size() < 1000) good.push_back(e);
    } catch (const error& problem) {
      must_hold(problem.kind() == status::data_loss || problem.kind() == status::resource_exhausted, problem.what());
      ++errors;
    }
  }
  any_dataset forgiving = make(disk, choice, true), continued = make(disk, choice, true);
  datum e;
  for (std::size_t i = 0; i < good.size(); ++i) {
    if (i == good.size() / 2) {
      std::vector<std::byte> position;
      forgiving.save(position);
      continued.load(position);
    }
    must_hold(forgiving.pull(e) && e == good[i], "other elements without errors");
    if (i >= good.size() / 2) must_hold(continued.pull(e) && e == good[i], "other elements behind a position");
  }
  return errors == 0;
}

inline bool read_text_line(std::span<const std::byte> file) {
  return read_text_file(file, [](const auto& disk, unsigned choice, bool ignore) {
    return text_line(
        "f", {.ignore_errors = ignore, .limits = {.record_bytes = choice % 2 == 0 ? std::uint64_t{1} << 26 : 20}},
        disk);
  });
}
inline bool read_csv(std::span<const std::byte> file) {
  return read_text_file(file, [](const auto& disk, unsigned choice, bool ignore) {
    const bool some = (choice & 1) != 0;
    return csv(
        "f",
        {{"i", int32, {2}, some ? csv_default(7) : csv_default()},
         {"x", float32},
         {"w", uint8, {any_extent}, (choice & 2) != 0 ? csv_default("-") : csv_default()},
         {"n", int64},
         {"y", float64, {}, some ? csv_default(0.5) : csv_default()}},
        {.header = (choice & 4) != 0,
         .field_delim = (choice & 8) != 0 ? '.' : ',',
         .use_quote_delim = (choice & 16) == 0,
         .na_value = (choice & 32) != 0 ? "-1" : "",
         .select_cols = (choice & 64) != 0 ? std::vector<std::int64_t>{0, 1, 3, 4, 6, 7} : std::vector<std::int64_t>{},
         .comment = (choice & 128) != 0 ? '#' : '\0',
         .ignore_errors = ignore,
         .limits = {.record_bytes = some ? 64 : std::uint64_t{1} << 26}},
        disk);
  });
}
inline bool read_libsvm(std::span<const std::byte> file) {
  return read_text_file(file, [](const auto& disk, unsigned choice, bool ignore) {
    constexpr dtype types[] = {float32, float64, int32, int64};
    return libsvm("f",
                  {.features = (choice & 16) != 0 && (choice & 1) != 0 ? 0 : 100,
                   .ragged = (choice & 1) != 0,
                   .zero_based = (choice & 2) != 0,
                   .label_type = types[choice >> 6 & 3],
                   .multilabel = (choice & 4) != 0,
                   .qid = (choice & 8) != 0,
                   .ignore_errors = ignore,
                   .limits = {.record_bytes = (choice & 32) != 0 ? 40 : std::uint64_t{1} << 26}},
                  disk);
  });
}
inline bool read_criteo(std::span<const std::byte> file) {
  return read_text_file(file, [](const auto& disk, unsigned choice, bool ignore) {
    return criteo("f",
                  {.labels = (choice & 1) == 0,
                   .log_transform = (choice & 2) != 0,
                   .hash_buckets = (choice & 4) != 0 ? 1000 : 0,
                   .ignore_errors = ignore},
                  disk);
  });
}

// A .npy file, or an archive of them, as rows.
inline bool read_npy(std::span<const std::byte> file) {
  const testing::faulty_files disk;
  publish(disk, "f.npy", byte_pieces(&file, 1));
  try {
    const bool archive = file.size() > 1 && file[0] == std::byte{'P'};
    auto rows = archive ? npz_arrays("f.npy", {}, {.limits = {.inflated_bytes = 1 << 20, .inflated_times = 1}}, disk)
                        : npy("f.npy", {}, disk);
    std::size_t bytes = 0;
    for (const auto& c : rows.element_spec()) bytes += size_bytes(c);
    must_hold(bytes == 0 || static_cast<std::uint64_t>(rows.size()) <= (file.size() + (1 << 20)) / bytes,
              "more rows than bytes");
    datum e;
    for (std::int64_t i = 0; i < std::min<std::int64_t>(rows.size(), 1000); ++i) must_hold(rows.next(e), "a row less");
    return true;
  } catch (const error&) {
    return false;
  }
}

}  // namespace fuzz
