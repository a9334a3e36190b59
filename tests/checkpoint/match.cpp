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
