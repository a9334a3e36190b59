#include "gradus/checkpoint/match.hpp"

#include <doctest/doctest.h>

using namespace gradus;

namespace {
struct text_blob final : blob {
  std::string value;
  bool refuses = false;
  void save(std::vector<std::byte>& out) const override {
    for (const char c : value) out.push_back(static_cast<std::byte>(c));
  }
  void load(std::span<const std::byte> in) override {
    if (refuses) raise(status::data_loss, "cannot use it");
    value.assign(reinterpret_cast<const char*>(in.data()), in.size());
  }
};
std::span<const std::byte> bytes(const auto& values) { return std::as_bytes(std::span(values)); }
}  // namespace

TEST_CASE("compare names everything that does not fit, in one text") {
  float w[6] = {}, b[2] = {};
  std::int64_t step = 0;
  text_blob position;
  state_list list;
  list.tensor("w", {2, 3}, std::span<float>(w));
  list.tensor("b", {2}, std::span<float>(b));
  list.scalar("step", step);
  list.dynamic("position", position);

  const float values[6] = {};
  const std::int64_t number[1] = {};
  snapshot s;
  s.about["model"] = "a";
  s.records = {{"w", float32, {2, 3}, bytes(values), false},
               {"b", float32, {2}, std::span(bytes(values)).first(8), false},
               {"step", int64, {}, bytes(number), false},
               {"position", uint8, {8}, bytes(number), true}};
  CHECK(detail::compare(list, s, {}).problem.empty());
  CHECK(detail::compare(list, s, {.model = "a"}).problem.empty());
  auto m = detail::compare(list, s, {.model = "b"});
  CHECK(m.kind == status::invalid_argument);
  CHECK(m.problem == "\n  the fingerprint of the model: \"b\" here, \"a\" in the file");

  s.records[0].dims = {3, 2};
  s.records[1].name = "bias";
  s.records[2].type = float64;
  s.records[3].blob = false;
  s.records.push_back({"other", float32, {6}, bytes(values), false});
  m = detail::compare(list, s, {.model = "b"});
  CHECK(m.kind == status::not_found);
  CHECK(m.problem ==
        "\n  missing in the file: \"b\""
        "\n  in the file, but not in this model: \"bias\", \"other\""
        "\n  of another type or shape: \"w\" (float32[2, 3] here, float32[3, 2] in the file), "
        "\"step\" (int64[] here, float64[] in the file), \"position\" (a blob here, uint8[8] in the file)"
        "\n  the fingerprint of the model: \"b\" here, \"a\" in the file");
  CHECK(detail::compare(list, s, {.ignore_extra = true}).problem.find("but not in this model") == std::string::npos);
}

TEST_CASE("copy_into: a blob that refuses leaves everything as it was") {
  float w[2] = {1, 2};
  text_blob first, second;
  first.value = "first", second.value = "second";
  state_list list;
  list.tensor("w", {2}, std::span<float>(w));
  list.dynamic("first", first);
  list.dynamic("second", second);
  const float values[2] = {8, 9};
  const char text[3] = {'n', 'e', 'w'};
  snapshot s;
  s.records = {{"second", uint8, {3}, bytes(text), true},
               {"w", float32, {2}, bytes(values), false},
               {"first", uint8, {3}, bytes(text), true}};
  second.refuses = true;
  CHECK_THROWS_AS(detail::copy_into(list, s), data_loss);
  CHECK(first.value == "first");
  CHECK(second.value == "second");
  CHECK(w[0] == 1);
  second.refuses = false;
  detail::copy_into(list, s);
  CHECK(first.value == "new");
  CHECK(second.value == "new");
  CHECK(w[1] == 9);
}

namespace {
struct lacking_blob final : blob {
  std::string value = "old";
  std::vector<std::string> told;
  int loads = 0;
  void save(std::vector<std::byte>& out) const override {
    for (const char c : value) out.push_back(static_cast<std::byte>(c));
  }
  void load(std::span<const std::byte> in) override {
    ++loads;
    value.assign(reinterpret_cast<const char*>(in.data()), in.size());
  }
  void load_lacking(const state_list& of) override {
    value = "lacking";
    for (const auto& e : of.entries())
      if (e.dynamic == nullptr) told.push_back(e.name);
  }
};
}  // namespace

TEST_CASE(
    "what a file of another program's may lack: a blob, and tensors where it lacks that; what it has besides is its "
    "own") {
  const float there[2] = {3, 4};
  const std::int64_t number[1] = {7};
  const std::vector<std::byte> content{std::byte{'n'}};
  const record w{"w", float32, {2}, bytes(there), false}, seed{"seed", int64, {}, bytes(number), false},
      extra{"extra", int64, {}, bytes(number), false}, which{"which", uint8, {1}, content, true};
  for (const bool ours : {false, true})
    for (const bool has_blob : {false, true})
      for (const bool has_seed : {false, true})
        for (const bool has_extra : {false, true})
          for (const bool has_w : {false, true}) {
            float live[2] = {};
            std::int64_t stream = 5;
            lacking_blob b;
            state_list list;
            list.tensor("w", {2}, std::span<float>(live));
            list.tensor("seed", int64, {}, std::as_writable_bytes(std::span(&stream, 1)), true);
            list.dynamic("which", b, true);
            snapshot s;
            if (ours) s.about["library"] = "gradus";
            if (has_w) s.records.push_back(w);
            if (has_seed) s.records.push_back(seed);
            if (has_extra) s.records.push_back(extra);
            if (has_blob) s.records.push_back(which);
            const detail::mismatch found = detail::compare(list, s, {});
            std::string missing, besides;
            if (!has_w) missing = "\"w\"";
            if (has_blob && !has_seed) missing += missing.empty() ? "\"seed\"" : ", \"seed\"";
            if (has_extra && (has_blob || ours)) besides = "\"extra\"";
            CHECK((found.problem.find("missing in the file: " + missing) != std::string::npos) == !missing.empty());
            CHECK((found.problem.find("but not in this model: " + besides) != std::string::npos) == !besides.empty());
            CHECK(found.problem.empty() == (missing.empty() && besides.empty()));
            if (!found.problem.empty()) continue;
            detail::copy_into(list, s);
            CHECK((live[0] == 3 && live[1] == 4));
            CHECK(stream == (has_seed ? 7 : 5));
            CHECK(b.value == (has_blob ? "n" : "lacking"));
            CHECK(b.told == (has_blob ? std::vector<std::string>{} : std::vector<std::string>{"w", "seed"}));
          }
  // A blob that must be there is missed, whatever else may lack.
  text_blob position;
  lacking_blob b;
  state_list list;
  list.dynamic("which", b, true), list.dynamic("position", position);
  CHECK(detail::compare(list, {}, {}).problem == "\n  missing in the file: \"position\"");
}

TEST_CASE("a blob that refuses gives one that the file lacks back what it held") {
  lacking_blob first;
  text_blob second;
  second.refuses = true;
  state_list list;
  list.dynamic("first", first, true), list.dynamic("second", second);
  snapshot s;
  s.records = {{"second", uint8, {0}, {}, true}};
  CHECK_THROWS_AS(detail::copy_into(list, s), data_loss);
  CHECK((first.value == "old" && first.loads == 1));
}
