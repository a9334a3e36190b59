#include <gradus/input/tf_example.hpp>

#include <gradus/input/cache.hpp>
#include <gradus/input/dataset.hpp>
#include <gradus/input/example.hpp>
#include <gradus/input/map.hpp>
#include <gradus/input/record_writer.hpp>
#include <gradus/testing/faulty_files.hpp>

#include "data.hpp"
#include "record_bytes.hpp"

using namespace data_tests;
using record_bytes::hex;
using testing::faulty_files;

namespace {

// Ten examples: x = [i, -i], y = i, name = "n<i>" (absent in 3), many = i values, ids/weights: one at place i.
faulty_files disk_of_ten(compression_type how = compression_type::none) {
  faulty_files disk;
  record_writer out("a", {.compression = how}, disk);
  for (int i = 0; i < 10; ++i) {
    example_builder e;
    const float v = static_cast<float>(i);
    e.add_floats("x", {v, -v}).add_ints("y", {i});
    if (i != 3) e.add_text("name", text("n", i));
    e.add_ints("many", std::vector<std::int64_t>(static_cast<std::size_t>(i), i));
    e.add_ints("ids", {i}).add_floats("weights", {v / 2});
    out.write(e);
  }
  out.close();
  return disk;
}
const example_spec xy{{"x", fixed_len_feature{{2}, float32}}, {"y", fixed_len_feature{{}, int64}}};

}  // namespace

TEST_CASE("fixed features go straight into batches") {
  const auto disk = disk_of_ten();
  auto input =
      tf_example("a", {{"x", fixed_len_feature{{2}, float32}}, {"y", fixed_len_feature{{}, int64}}}, {}, disk).batch(4);
  CHECK(to_text(input.element_spec()) == "x float32 [2], y int64 []");
  std::vector<float> x(8);
  std::vector<std::int64_t> y(4);
  const tensor_view views[] = {tensor_view(float32, {4, 2}, reinterpret_cast<std::byte*>(x.data())),
                               tensor_view(int64, {4}, reinterpret_cast<std::byte*>(y.data()))};
  CHECK(input.next(views) == 4);
  CHECK(input.next(views) == 4);
  CHECK(x == std::vector<float>{4, -4, 5, -5, 6, -6, 7, -7});
  CHECK(y == ints{4, 5, 6, 7});
  CHECK(input.next(views) == 2);
  CHECK(y[1] == 9);
  CHECK(input.next(views) == 0);
}

TEST_CASE("lists, texts, sparse values, steps, defaults") {
  const auto disk = disk_of_ten();
  auto input = tf_example("a",
                          {{"name", var_len_feature{feature_kind::text}},
                           {"title", fixed_len_feature{{}, feature_kind::text, "none"}},
                           {"many", var_len_feature{int64}},
                           {"s", sparse_feature{"ids", "weights", float32, 10}},
                           {"steps", fixed_len_sequence_feature{{2, 1}, float32, true}},
                           {"z", fixed_len_feature{{2}, int64, {7, 8}}},
                           {"zf", fixed_len_feature{{2}, float32, 0.5}}},
                          {}, disk)
                   .skip(2);
  CHECK(to_text(input.element_spec()) ==
        "name uint8 [-1], title uint8 [-1], many int64 [-1], s float32 [-1], s_indices int64 [-1], steps float32 "
        "[-1, 2, 1], z int64 [2], zf float32 [2]");
  datum e;
  REQUIRE(input.next(e));
  const auto name = e.values<std::uint8_t>("name"), title = e.values<std::uint8_t>("title");
  CHECK(std::string(name.begin(), name.end()) == "n2");
  CHECK(std::string(title.begin(), title.end()) == "none");
  CHECK(e["many"].dims == extents{2});
  CHECK(e.value<float>("s") == 1.0F);
  CHECK(e.value<std::int64_t>("s_indices") == 2);
  CHECK(e["steps"].dims == extents{0, 2, 1});
  CHECK(e.values<std::int64_t>("z")[1] == 8);
  CHECK(e.values<float>("zf")[1] == 0.5F);
  REQUIRE(input.next(e));
  CHECK(e["name"].dims == extents{0});
  auto steps = tf_example("a", {{"x", fixed_len_sequence_feature{{1}, float32, true}}}, {}, disk);
  REQUIRE(steps.next(e));
  CHECK(e["x"].dims == extents{2, 1});
}

TEST_CASE("the position, at every example, compressed too") {
  for (const auto how : {compression_type::none, compression_type::gzip}) {
    const auto disk = disk_of_ten(how);
    resumes([&] { return tf_example("a", xy, {}, disk); });
    resumes([&] { return tf_example("a", xy, {}, disk).shuffle(4, 1).repeat(2).batch(3); });
  }
}

TEST_CASE("the other ways: apply, map by threads, batches of features") {
  const auto disk = disk_of_ten();
  const auto ys = [](any_dataset d) {
    ints out;
    for (datum e; d.next(e);) out.push_back(e.value<std::int64_t>("y"));
    return out;
  };
  const ints ten = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  CHECK(ys(tf_record("a", {}, disk).apply(parse_example_dataset(xy))) == ten);
  CHECK(ys(tf_record("a", {}, disk).map(example_components(xy), example_parser(xy), {.parallel = 2})) == ten);
  CHECK(ys(tf_record("a", {}, disk).cache().apply(parse_example_dataset(xy))) == ten);
  auto records = tf_record("a", {}, disk);
  CHECK(parse_example_batch(records, 4, xy)["y"].ints == ints{0, 1, 2, 3});
  CHECK(parse_example_batch(records, 100, xy)["x"].floats[10] == 9);
  CHECK(parse_example_batch(records, 4, xy).rows() == 0);
}

TEST_CASE("an example that cannot be parsed: file, record, byte; or counted") {
  auto disk = disk_of_ten();
  record_writer out("b", {}, disk);
  example_builder e;
  e.add_floats("x", {1, 2}).add_ints("y", {1});
  out.write(e);
  out.write("no example");
  example_builder wrong;
  wrong.add_floats("x", {1, 2, 3}).add_ints("y", {1});
  out.write(wrong);
  out.write(e);
  out.close();
  auto loud = tf_example("b", xy, {}, disk);
  datum d;
  CHECK(loud.next(d));
  CHECK(message_of(status::data_loss, [&] {
          loud.next(d);
        }).starts_with("Name: \"b\", record 2 (byte 49), Index: 1.  Could not parse example input: malformed"));
  CHECK(message_of(status::invalid_argument, [&] { loud.next(d); }) ==
        "Name: \"b\", record 3 (byte 75), Key: x, Index: 2.  Number of float values != expected.  Values size: 3 but "
        "output shape: [2]");
  CHECK(loud.next(d));
  CHECK_FALSE(loud.next(d));
  auto quiet = tf_example({"b", "a"}, xy, {.ignore_errors = true}, disk);
  std::int64_t n = 0;
  while (quiet.next(d)) ++n;
  CHECK(n == 12);
  CHECK(quiet.skipped() == 2);
  resumes([&] { return tf_example("b", xy, {.ignore_errors = true}, disk); });
  auto mapped = tf_record("b", {}, disk).skip(2).apply(parse_example_dataset(xy));
  CHECK(
      message_of(status::invalid_argument, [&] { mapped.next(d); }).starts_with("Name: <unknown>, Key: x, Index: 0."));
}

TEST_CASE("what a component cannot hold is refused") {
  const auto refused = [](const example_spec& spec) {
    return message_of(status::invalid_argument, [&] { example_components(spec); });
  };
  const std::string several = "a component holds one string, not several; read this one with parse_example";
  CHECK(refused({{"t", fixed_len_feature{{2}, feature_kind::text}}}) == "feature \"t\": " + several);
  CHECK(refused({{"t", sparse_feature{"i", "t", feature_kind::text, 4}}}) == "feature \"t\": " + several);
  CHECK(refused({{"s", sparse_feature{"i", "v", float32, 4}}, {"s_indices", var_len_feature{int64}}}) ==
        "two components are called \"s_indices\"");
  CHECK(message_of(status::invalid_argument, [] { range_dataset(3).apply(parse_example_dataset(xy)); }) ==
        "parse_example: expected records, one component of uint8 [n], found value int64 []");
  faulty_files disk;
  record_writer out("a", {}, disk);
  example_builder e;
  e.add_text("t", {"a", "b"});
  out.write(e);
  out.close();
  auto d = tf_example("a", {{"t", var_len_feature{feature_kind::text}}}, {}, disk);
  datum to;
  CHECK(message_of(status::invalid_argument, [&] {
          d.next(to);
        }).ends_with("expected one string, found 2; parse_example reads several"));
}
