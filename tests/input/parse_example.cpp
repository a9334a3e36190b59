#include <gradus/input/parse_example.hpp>

#include <gradus/input/example.hpp>

#include <doctest/doctest.h>

#include "example_bytes.hpp"

#include "../message.hpp"

using namespace gradus;
using example_bytes::hex;

namespace {

using longs = std::vector<std::int64_t>;
using reals = std::vector<float>;

std::vector<std::string> strings(const text_list& t) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < t.size(); ++i) out.emplace_back(t[i]);
  return out;
}

}  // namespace

TEST_CASE("the published example") {
  const auto batch = parse_single_example(hex(example_bytes::xys), {{"x", fixed_len_feature{{2}, float32}},
                                                                    {"y", fixed_len_feature{{}, int64}},
                                                                    {"s", var_len_feature{feature_kind::text}}});
  CHECK(batch.rows() == 1);
  CHECK(batch["x"].floats == reals{1, -2});
  CHECK(batch["y"].ints == longs{3});
  CHECK(strings(batch["s"].texts) == std::vector<std::string>{"hi"});
  CHECK(batch["s"].splits == longs{0, 1});
}

TEST_CASE("what protoc writes: negative numbers, empty lists, a Feature without a list is missing") {
  const auto message = hex(example_bytes::abcd);
  const auto batch = parse_single_example(message, {{"a", var_len_feature{float32}},
                                                    {"b", fixed_len_feature{{2, 2}, int64}},
                                                    {"c", fixed_len_feature{{2}, feature_kind::text}},
                                                    {"d", fixed_len_feature{{}, float32, 0.5}},
                                                    {"e", fixed_len_feature{{2}, feature_kind::text, "no"}}});
  CHECK(batch["a"].size() == 0);
  CHECK(batch["b"].ints == longs{-1, 300, INT64_MAX, INT64_MIN});
  CHECK(strings(batch["c"].texts) == std::vector<std::string>{"", std::string("\0\xff", 2)});
  CHECK(batch["d"].floats == reals{0.5F});
  CHECK(strings(batch["e"].texts) == std::vector<std::string>{"no", "no"});
  CHECK(parse_single_example(message, {{"d", var_len_feature{int64}}})["d"].splits == longs{0, 0});
  CHECK(message_of(status::invalid_argument,
                   [&] {
                     parse_single_example(message, {{"d", fixed_len_feature{{}, float32}}});
                   }) ==
        "Name: <unknown>, Feature: d (data type: float) is required but could not be found.  Index: 0.  Give it a "
        "default_value if it may be missing");
  CHECK(message_of(status::invalid_argument,
                   [&] {
                     parse_single_example(message, {{"a", fixed_len_feature{{1}, float32}}});
                   }) ==
        "Name: <unknown>, Key: a, Index: 0.  Number of float values != expected.  Values size: 0 but output shape: "
        "[1]");
}

TEST_CASE("a batch: dense, ragged, sparse, padded") {
  std::vector<std::vector<std::byte>> records;
  example_builder e;
  e.add_floats("x", {1}).add_ints("n", {1, 2, 3}).add_ints("at", {4, 0, 2}).add_floats("v", {0.4F, 0, 0.2F});
  e.add_text("w", {"a"}).add_ints("step", {1, 2}).add_text("p", {"4", "0", "2"});
  records.push_back(e.bytes());
  e.clear();
  e.add_floats("x", {2}).add_ints("at", {9}).add_floats("v", {0.9F}).add_text("w", {"bc", ""}).add_text("p", "9");
  records.push_back(e.bytes());
  e.clear();
  e.add_ints("n", {4}).add_ints("step", {5, 6, 7, 8}).add_text("more", {"unwanted"});
  records.push_back(e.bytes());

  const example_spec spec{{"x", fixed_len_feature{{1}, float32, -1}},
                          {"n", var_len_feature{int64}},
                          {"sparse", sparse_feature{"at", "v", float32, 10}},
                          {"placed text", sparse_feature{"at", "p", feature_kind::text, 10}},
                          {"w", fixed_len_sequence_feature{{}, feature_kind::text, true, "<pad>"}},
                          {"step", fixed_len_sequence_feature{{2}, int64, true}}};
  const auto batch = parse_example(records, spec);
  CHECK(batch.rows() == 3);
  CHECK(batch["x"].floats == reals{1, 2, -1});
  CHECK(batch["n"].ints == longs{1, 2, 3, 4});
  CHECK(batch["n"].splits == longs{0, 3, 3, 4});
  CHECK(batch["sparse"].places == longs{0, 2, 4, 9});
  CHECK(batch["sparse"].floats == reals{0, 0.2F, 0.4F, 0.9F});
  CHECK(batch["sparse"].splits == longs{0, 3, 4, 4});
  CHECK(batch["sparse"].width == 10);
  CHECK(strings(batch["placed text"].texts) == std::vector<std::string>{"0", "2", "4", "9"});
  CHECK(batch["w"].dims == extents{2});
  CHECK(strings(batch["w"].texts) == std::vector<std::string>{"a", "<pad>", "bc", "", "<pad>", "<pad>"});
  CHECK(batch["step"].dims == extents{2, 2});
  CHECK(batch["step"].ints == longs{1, 2, 0, 0, 0, 0, 0, 0, 5, 6, 7, 8});
  CHECK(parse_example(std::vector<std::string>{}, spec)["x"].size() == 0);
}

TEST_CASE("of a key that comes twice the last counts, whatever the first was") {
  const auto message =
      hex("0a 0f 0a 0d 0a 01 6b 12 08 12 06 0a 04 00 00 80 3f 0a 0c 0a 0a 0a 01 6b 12 05 1a 03 0a 01 07");
  CHECK(parse_single_example(message, {{"k", fixed_len_feature{{}, int64}}})["k"].ints == longs{7});
}

TEST_CASE("errors name the example, the key, what was expected and what came") {
  example_builder good, bad;
  good.add_floats("x", {1, 2});
  bad.add_ints("x", {1, 2});
  const std::vector<std::vector<std::byte>> records = {good.bytes(), bad.bytes()};
  const example_spec spec{{"x", fixed_len_feature{{2}, float32}}};
  CHECK(message_of(status::invalid_argument, [&] { parse_example(records, spec); }) ==
        "Name: <unknown>, Key: x, Index: 1.  Data types don't match. Data type: int64 but expected type: float");
  const std::vector<std::string> called = {"a", "b"};
  CHECK(message_of(status::invalid_argument, [&] {
          parse_example(records, spec, called);
        }).starts_with("Name: b, Key: x"));
  CHECK(message_of(status::invalid_argument, [&] {
          parse_example(records, {{"x", fixed_len_sequence_feature{{2}, float32}}});
        }) == "feature \"x\": Unsupported: FixedLenSequenceFeature requires allow_missing to be True.");
  CHECK(message_of(status::invalid_argument,
                   [&] {
                     parse_single_example(records[0], {{"x", fixed_len_sequence_feature{{3}, float32, true}}});
                   }) ==
        "Name: <unknown>, Key: x, Index: 0.  Number of float values is not a multiple of stride length. Saw 2 values "
        "but output shape is: [3]");
  const auto cut = std::span<const std::byte>(records[0]).first(records[0].size() - 1);
  CHECK(message_of(status::data_loss, [&] {
          parse_single_example(cut, spec, "f");
        }).starts_with("Name: f, Index: 0.  Could not parse example input: malformed protobuf message: field 1"));
  example_builder sparse;
  sparse.add_ints("i", {1, 2}).add_floats("v", {1}).add_ints("j", {3}).add_ints("k", {-1});
  const auto r = sparse.bytes();
  CHECK(message_of(status::invalid_argument, [&] {
          parse_single_example(r, {{"s", sparse_feature{"i", "v", float32, 3}}});
        }) == "Name: <unknown>, Key: s, Index: 0.  expected a place for each of its 1 values, found 2 places");
  for (const auto key : {"j", "k"})
    CHECK(message_of(status::invalid_argument, [&] {
            parse_single_example(r, {{"s", sparse_feature{key, "v", float32, 3}}});
          }).starts_with("Name: <unknown>, Key: s, Index: 0.  expected places from 0 to 2, found "));
}

TEST_CASE("records of other shapes: strings, spans, data") {
  const auto message = hex(example_bytes::xys);
  const example_spec spec{{"y", fixed_len_feature{{}, int64}}};
  const std::string as_string(reinterpret_cast<const char*>(message.data()), message.size());
  datum d({{"record", uint8, {any_extent}}});
  const auto n = static_cast<std::int64_t>(message.size());
  std::memcpy(d.resize(0, {n}).mutable_data(), message.data(), message.size());
  CHECK(parse_example(std::vector<std::string>{as_string, as_string}, spec)["y"].ints == longs{3, 3});
  CHECK(parse_example(std::vector<datum>{d}, spec)["y"].ints == longs{3});
  CHECK(parse_single_example(d, spec)["y"].ints == longs{3});
  CHECK(parse_single_example("", {{"y", var_len_feature{int64}}})["y"].size() == 0);
}

TEST_CASE("cut and flipped anywhere: an error, or values that fit the spec") {
  const auto message = hex(example_bytes::xys);
  const example_spec spec{{"x", fixed_len_feature{{2}, float32, 0}},
                          {"y", var_len_feature{int64}},
                          {"s", var_len_feature{feature_kind::text}}};
  const auto attempt = [&](std::span<const std::byte> bytes) {
    try {
      const auto batch = parse_single_example(bytes, spec);
      REQUIRE(batch["x"].size() == 2);
    } catch (const error& e) {
      REQUIRE((e.kind() == status::data_loss || e.kind() == status::invalid_argument));
    }
  };
  for (std::size_t n = 0; n < message.size(); ++n) attempt(std::span<const std::byte>(message).first(n));
  for (std::size_t bit = 0; bit < 8 * message.size(); ++bit) {
    auto changed = message;
    changed[bit / 8] ^= std::byte{1} << (bit % 8);
    attempt(changed);
  }
}

TEST_CASE("a SequenceExample: context and steps") {
  const auto message = hex(example_bytes::sequence);
  const example_spec context{{"n", fixed_len_feature{{}, int64}}};
  const auto s = parse_single_sequence_example(message, context,
                                               {{"t", fixed_len_sequence_feature{{2}, float32}},
                                                {"w", var_len_feature{feature_kind::text}},
                                                {"none", fixed_len_sequence_feature{{}, int64}},
                                                {"absent", fixed_len_sequence_feature{{}, int64, true}},
                                                {"gone", var_len_feature{int64}}});
  CHECK(s.context["n"].ints == longs{2});
  CHECK(s["t"].steps == 2);
  CHECK(s["t"].values.floats == reals{1, 2, 3, 4});
  CHECK(s["t"].values.begin(1) == 2);
  CHECK(s["w"].steps == 3);
  CHECK(s["w"].values.splits == longs{0, 2, 2, 3});
  CHECK(strings(s["w"].values.texts) == std::vector<std::string>{"a", "bc", "d"});
  for (const auto name : {"none", "absent", "gone"}) CHECK(s[name].steps == 0);
  CHECK(message_of(status::not_found, [&] { s["x"]; }) ==
        "no feature list is called \"x\"; there are t, w, none, absent, gone");

  const auto refused = [&](const example_spec& lists) {
    return message_of(status::invalid_argument, [&] { parse_single_sequence_example(message, context, lists, "r"); });
  };
  CHECK(refused({{"z", fixed_len_sequence_feature{{}, int64}}}) ==
        "Name: r, Feature list 'z' is required but could not be found.  Did you mean to allow_missing?");
  CHECK(refused({{"t", var_len_feature{int64}}}) ==
        "Name: r, Key: t, Index: 0.  Data types don't match. Data type: float but expected type: int64");
  CHECK(refused({{"w", fixed_len_sequence_feature{{2}, feature_kind::text}}}) ==
        "Name: r, Key: w, Index: 1.  Number of bytes values != expected.  Values size: 0 but output shape: [2]");
  CHECK(refused({{"t", fixed_len_feature{{2}, float32}}}) ==
        "feature list \"t\": expected a fixed_len_sequence_feature or a var_len_feature");
}
