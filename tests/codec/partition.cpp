#include "gradus/codec/partition.hpp"

#include "bundle_files.hpp"

using namespace bundle_test;

namespace {
std::vector<std::int64_t> lengths(const partition_map& parts, int axis) {
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < parts.size(); ++i) out.push_back(parts.at(text("w/part_", i)).length[axis]);
  return out;
}
// A tensor of int32 that counts its elements, and the parts that a map makes of it.
struct counted {
  std::vector<std::int32_t> values;
  snapshot content;
  std::deque<std::vector<std::byte>> owned;

  explicit counted(const extents& dims) {
    for (std::int64_t i = 0; i < count(dims); ++i) values.push_back(static_cast<std::int32_t>(i));
    content.records = {{"w", int32, dims, bytes(values), false}, {"other", int32, {}, bytes(values).first(4), false}};
  }
};
using list = std::vector<std::int32_t>;
slice_of slice(const extents& full, const extents& start, const extents& length) { return {"w", full, start, length}; }
}  // namespace

TEST_CASE("partition: the first parts are the longer") {
  CHECK(lengths(partition_variable("w", {10, 2}, {0, 3}), 0) == std::vector<std::int64_t>{4, 3, 3});
  CHECK(lengths(partition_variable("w", {10, 11}, {1, 4}), 1) == std::vector<std::int64_t>{3, 3, 3, 2});
  const auto parts = partition_variable("w", {10, 2}, {0, 3});
  CHECK(parts.at("w/part_1") == slice({10, 2}, {4, 0}, {3, 2}));
  CHECK(parts.at("w/part_2").start == extents{7, 0});
  CHECK(partition_variable("w", {0, 2}, {0, 1}).size() == 1);
  CHECK_THROWS_WITH_AS(partition_variable("w", {2}, {0, 3}), "\"w\" has 2 rows along axis 0, which do not make 3 parts",
                       invalid_argument);
}

TEST_CASE("partition: cut and joined along any axes") {
  for (const extents& dims : {extents{7}, extents{5, 4}, extents{4, 5, 3}, extents{1, 1, 6, 2}})
    for (int axis = 0; axis < dims.rank; ++axis)
      for (std::int64_t n = 1; n <= dims[axis]; ++n) {
        counted c(dims);
        const auto parts = partition_variable("w", dims, {axis, n});
        CHECK(cut_parts(c.content, parts, c.owned) == "");
        CHECK(c.content.records.size() == static_cast<std::size_t>(n) + 1);
        CHECK(c.owned.empty() == (axis == 0 || n == 1 || count(dims) == dims[axis] ||
                                  (dims.rank == 4 && axis == 2)));  // one piece: a view
        CHECK(join_parts(c.content, parts, c.owned) == "");
        CHECK(c.content.records.size() == 2);
        CHECK(values<std::int32_t>(c.content, "w") == c.values);
      }
  counted c({4, 3});
  const partition_map blocks{
      {"a", slice({4, 3}, {0, 0}, {3, 2})}, {"b", slice({4, 3}, {3, 0}, {1, 2})}, {"c", slice({4, 3}, {0, 2}, {4, 1})}};
  CHECK(cut_parts(c.content, blocks, c.owned) == "");
  CHECK(values<std::int32_t>(c.content, "a") == list{0, 1, 3, 4, 6, 7});
  CHECK(values<std::int32_t>(c.content, "b") == list{9, 10});
  CHECK(values<std::int32_t>(c.content, "c") == list{2, 5, 8, 11});
  CHECK(join_parts(c.content, blocks, c.owned) == "");
  CHECK(values<std::int32_t>(c.content, "w") == c.values);
}

TEST_CASE("partition: what does not fit is named, and nothing is changed") {
  counted c({4, 3});
  const auto cut = [&](const slice_of& s) { return cut_parts(c.content, {{"p", s}}, c.owned); };
  CHECK(cut(slice({4, 3}, {2, 0}, {3, 3})) ==
        "\"p\" is no part of \"w\": rows 2 to 2 + 3 of axis 0 are outside of [4, 3]");
  CHECK(cut(slice({4, 3}, {-1, 0}, {1, 3})).find("outside") != std::string::npos);
  CHECK(cut(slice({4, 3}, {0}, {3, 3})) == "\"p\" is no part of \"w\": its ranks differ");
  CHECK(cut(slice({4, 4}, {0, 0}, {4, 2})) == "\"w\" has the extents [4, 3] in the file, its part \"p\" is of [4, 4]");
  CHECK(c.content.records.size() == 2);
  const auto join = [&](const extents& start, const extents& length) {
    snapshot s;
    s.records = {{"p", int32, {2, 3}, bytes(c.values).first(24), false},
                 {"q", int32, {2, 3}, bytes(c.values).last(24), false}};
    return join_parts(s, {{"p", slice({4, 3}, {0, 0}, {2, 3})}, {"q", slice({4, 3}, start, length)}}, c.owned);
  };
  CHECK(join({2, 0}, {2, 3}) == "");
  CHECK(join({1, 0}, {2, 3}) == "\"w\" cannot be put together: its parts overlap");
  CHECK(join({2, 0}, {1, 3}) == "\"w\" cannot be put together: its part \"q\" has the extents [2, 3], expected [1, 3]");
  snapshot half;
  half.records = {{"p", int32, {2, 3}, bytes(c.values).first(24), false}};
  CHECK(join_parts(half, {{"p", slice({4, 3}, {0, 0}, {2, 3})}}, c.owned) ==
        "\"w\" cannot be put together: its parts do not cover it");
  // A tensor that is not there, or whose parts are there, is passed over.
  CHECK(cut_parts(half, {{"p", slice({4, 3}, {0, 0}, {2, 3})}}, c.owned) == "");
  CHECK(half.records.size() == 1);
}

TEST_CASE("partition: slots go with their variables") {
  const auto parts = partition_variable("w", {4, 3}, {0, 2});
  counted c({4, 3});
  c.content.records.push_back({"w/Adam", int32, {4, 3}, bytes(c.values), false});
  c.content.records.push_back({"w/factor", int32, {}, bytes(c.values).first(4), false});
  auto all = with_slots(parts, c.content);
  CHECK(all.size() == 4);
  CHECK(all.at("w/part_1/Adam") == slice_of{"w/Adam", {4, 3}, {2, 0}, {2, 3}});
  CHECK(cut_parts(c.content, all, c.owned) == "");
  CHECK(values<std::int32_t>(c.content, "w/part_1/Adam") == list{6, 7, 8, 9, 10, 11});
  CHECK(find(c.content, "w/factor") != nullptr);
  CHECK(with_slots(parts, c.content) == all);  // from the parts' side
}

TEST_CASE("partition: parts as metadata") {
  auto parts = partition_variable("w", {10, 2}, {0, 2});
  for (const auto& p : partition_variable("a b/c", {3, 4, 5}, {1, 2})) parts.insert(p);
  parts.emplace("x", slice({7}, {2}, {3}));
  metadata about{{"library", "gradus"}};
  put_partition(about, parts);
  CHECK(about.at("slice w/part_1") == "10 2 5,5:- w");
  CHECK(about.at("slice a b/c/part_0") == "3 4 5 -:0,2:- a b/c");
  CHECK(about.at("slice x") == "7 2,3 w");
  CHECK(partition_in(about) == parts);
  CHECK(partition_in({{"library", "gradus"}})->empty());
  for (const char* bad : {"", "w", "10", "10 - ", "- w", "10 2 0,5 w", "10 6,5 w", "10 -1,5 w", "10 0,5: w",
                          "99999999999999999999 - w", "1 1 1 1 1 1 1 -:-:-:-:-:-:- w"})
    CHECK_MESSAGE(!partition_in({{"slice p", bad}}).has_value(), bad);
}
