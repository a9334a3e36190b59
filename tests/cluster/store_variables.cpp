#include <gradus/cluster/store_variables.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace gradus;
using detail::matched_gradient;
using detail::place_variables;
using detail::slice_role;
using detail::store_variable;
using detail::wire_slice;

namespace {
std::vector<std::uint32_t> shards_of(const std::vector<store_variable>& all) {
  std::vector<std::uint32_t> out;
  for (const store_variable& v : all) out.push_back(v.shard);
  return out;
}
std::vector<store_variable> model() {
  return {{.name = "w", .dims = {4, 3}},
          {.name = "b", .type = float64, .dims = {3}},
          {.name = "table", .dims = {5, 2}, .takes_rows = true}};
}
// The parts of a whole gradient, to be spoilt.
struct gradient {
  std::vector<float> w = std::vector<float>(12), values = std::vector<float>(4);
  std::vector<double> b = std::vector<double>(3);
  std::vector<std::int64_t> rows{4, 0};
  std::vector<wire_slice> parts{{"w", float32, 0, std::as_bytes(std::span(w))},
                                {"b", float64, 0, std::as_bytes(std::span(b))},
                                {"table", int64, 0, std::as_bytes(std::span(rows)), slice_role::rows},
                                {"table", float32, 0, std::as_bytes(std::span(values)), slice_role::values}};
};
struct matching {
  std::vector<store_variable> all = model();
  detail::gradient_matcher matcher{2, {&all[0], &all[1], &all[2]}};
  std::vector<matched_gradient> out;
  std::string operator()(const gradient& g) { return matcher.match(g.parts, out); }
};
}  // namespace

TEST_CASE("variables go round robin, or where their device strings and a function say") {
  auto all = model();
  place_variables(all, 2);
  CHECK(shards_of(all) == std::vector<std::uint32_t>{0, 1, 0});
  CHECK(detail::chosen_places(all, 2).empty());
  place_variables(all, 1);
  CHECK(shards_of(all) == std::vector<std::uint32_t>{0, 0, 0});
  const auto greedy = [] {  // 48, then 24 and 40 bytes
    return replica_device_setter({.ps_tasks = 2, .ps_strategy = greedy_load_balancing_strategy(2, byte_size_load_fn)});
  };
  place_variables(all, 2, greedy());
  CHECK(shards_of(all) == std::vector<std::uint32_t>{0, 1, 1});
  using named = std::vector<std::pair<std::string, std::string>>;
  CHECK(detail::chosen_places(all, 2) == named{{"the place of \"table\"", "ps 1"}});
  std::string seen;
  all[1].device = "/job:ps/cpu:0";
  place_variables(all, 3, [&](const placed_op& op) {
    seen += text(op.name, ' ', op.type, ' ', op.device, ' ', name_of(op.output), ' ', to_text(op.dims), ';');
    return std::string("/job:ps/task:2");
  });
  CHECK(seen ==
        "w VariableV2  float32 [4, 3];b VariableV2 /job:ps/cpu:0 float64 [3];table VariableV2  float32 [5, 2];");
  CHECK(shards_of(all) == std::vector<std::uint32_t>{2, 2, 2});
  // A device without a job or a task is completed; one with a task takes its turn, as in TensorFlow.
  all[0].device = "/cpu:0", all[1].device = "/job:ps/replica:0/task:0/device:CPU:0", all[2].device = "/job:ps";
  place_variables(all, 3);
  CHECK(shards_of(all) == std::vector<std::uint32_t>{0, 0, 2});
  all[1].device = "/job:ps/task:1";
  place_variables(all, 2, greedy());
  CHECK(shards_of(all) == std::vector<std::uint32_t>{0, 1, 1});
  // An empty answer leaves the node's own device; tasks that see other devices have the same places.
  all[0].device = "/job:ps/task:1/gpu:0", all[2].device = "";
  place_variables(all, 2, [](const placed_op&) { return std::string(); });
  CHECK(shards_of(all) == std::vector<std::uint32_t>{1, 1, 0});
  for (const store_variable& v : all) CHECK(v.device.empty());
  // One function in several runs begins its turns and its loads anew in each.
  for (const device_function& again : {greedy(), replica_device_setter({.ps_tasks = 2})}) {
    place_variables(all, 2, again);
    const auto first = shards_of(all);
    const device_function copy = again;
    place_variables(all, 2, copy);
    CHECK(shards_of(all) == first);
  }
}
TEST_CASE("a device that the parameter servers do not have is refused with the variable's name") {
  auto all = model();
  CHECK_THROWS_WITH_AS(place_variables(all, 0), "place_variables: expected at least one shard, found none",
                       invalid_argument);
  for (const char* device : {"/job:worker", "/job:worker/task:0", "/job:master/task:0/cpu:0"})
    for (const bool by_function : {false, true}) {
      CAPTURE(device);
      CAPTURE(by_function);
      all[0].device = by_function ? "" : device;
      CHECK_THROWS_WITH_AS(
          place_variables(all, 3, by_function ? device_function([&](const placed_op&) { return device; }) : nullptr),
          text("the variable \"w\" has the device \"", device_spec::from_string(device).to_string(),
               "\"; the variables that a cluster trains lie on its parameter servers. Expected the job ps, as in ",
               "\"/job:ps/task:0\", or no device")
              .c_str(),
          invalid_argument);
    }
  all[0].device = "/job:ps/task:3";
  CHECK_THROWS_WITH_AS(place_variables(all, 3),
                       "the variable \"w\" has the device \"/job:ps/task:3\", and the cluster has no such task; "
                       "expected a task from 0 to 2, or a device without one",
                       invalid_argument);
  all[0].device = "ps";
  CHECK_THROWS_AS(place_variables(all, 3), invalid_argument);
}
TEST_CASE("device filters that leave out a parameter server are refused") {
  const cluster_spec all{{"ps", {"a:1", "b:1"}}, {"worker", {"c:1"}}};
  const auto said = [&](std::vector<std::string> filters) -> std::string {
    try {
      detail::check_device_filters(filters, all);
    } catch (const invalid_argument& e) {
      return e.what();
    }
    return "";
  };
  for (const std::vector<std::string>& f : std::vector<std::vector<std::string>>{
           {}, {"/job:ps"}, {"/job:worker/task:0", "/job:ps/cpu:0"}, {"/job:ps/task:1", "/job:ps/task:0"}, {"/cpu:0"}})
    CHECK(said(f) == "");
  CHECK(said({"/job:worker", "/job:ps/task:0"}) ==
        "the device filters \"/job:worker\", \"/job:ps/task:0\" of this task's session_config leave out ps 1, which "
        "holds variables of the run; add \"/job:ps\", or leave the filters out");
  CHECK(said({"/job:worker"}).find("leave out ps 0") != std::string::npos);
  detail::check_device_filters(std::vector<std::string>{"/job:worker"}, cluster_spec{{"worker", {"c:1"}}});
}
TEST_CASE("what a shard cannot keep is refused by name") {
  const auto refused = [](store_variable v, const std::string& what) {
    const store_variable all[] = {{.name = "first"}, v};
    CHECK_THROWS_WITH_AS(detail::check_variables(all), what.c_str(), invalid_argument);
  };
  detail::check_variables(model());
  refused({.name = "w", .type = bfloat16, .dims = {2}}, "\"w\", bfloat16 [2]: a shard keeps float32 and float64");
  refused({.name = "", .dims = {2}},
          "\"\", float32 [2]: a variable of a shard needs a name, which does not begin with ':'");
  refused({.name = ":w"}, "\":w\", float32 []: a variable of a shard needs a name, which does not begin with ':'");
  refused({.name = "first"}, "\"first\", float32 []: two variables have this name");
  refused({.name = "w", .dims = {2, 2}, .limit = non_neg, .takes_rows = true},
          "\"w\", float32 [2, 2]: Cannot use a constraint function on a sparse variable");
  refused({.name = "w", .takes_rows = true}, "\"w\", float32 []: a scalar has no rows");
  const std::string follows = ": it does not follow the part before it";
  refused({.name = "w/part_1", .dims = {2}, .whole = "w", .whole_dims = {4}, .first_row = 2},
          "\"w/part_1\", float32 [2]" + follows);
  refused({.name = "w", .dims = {2}, .first_row = 2}, "\"w\", float32 [2]" + follows);
  refused({.name = "w/part_0", .dims = {2}, .whole = "w", .whole_dims = {4, 1}}, "\"w/part_0\", float32 [2]" + follows);
  detail::check_variables(
      std::vector<store_variable>{{.name = "w/part_0", .dims = {2}, .whole = "w", .whole_dims = {4}},
                                  {.name = "w/part_1", .dims = {2}, .whole = "w", .whole_dims = {4}, .first_row = 2}});
}
TEST_CASE("a gradient for each variable is matched, in any order") {
  matching match;
  gradient g;
  for (int turn = 0; turn < 2; ++turn) {
    CHECK(match(g) == "");
    REQUIRE(match.out.size() == 3);
    CHECK(match.out[0].values->bytes.data() == reinterpret_cast<const std::byte*>(g.w.data()));
    CHECK(match.out[0].rows == nullptr);
    CHECK(match.out[1].values->type == float64);
    CHECK(match.out[2].rows->role == slice_role::rows);
    CHECK(match.out[2].values->role == slice_role::values);
    std::reverse(g.parts.begin(), g.parts.end());
  }
  g.rows.clear(), g.values.clear();
  g.parts[2].bytes = g.parts[3].bytes = {};
  CHECK(match(g) == "");
}
TEST_CASE("parts of strangers that do not fit are refused, each with its sentence") {
  matching match;
  const auto refused = [&](auto spoil, const char* what) {
    gradient g;
    spoil(g.parts, g);
    CHECK(match(g) == what);
  };
  using parts = std::vector<wire_slice>&;
  refused([](parts p, gradient&) { p.erase(p.begin() + 1); },
          "there is no gradient of \"b\"; expected one for each trainable variable of shard 2");
  refused([](parts p, gradient&) { p[0].name = "v"; },
          "\"v\" is no trainable variable of shard 2; workers and parameter servers have to run the same model, placed "
          "the same way");
  refused([](parts p, gradient&) { p.push_back(p[0]); }, "two gradients came for \"w\"; expected one");
  refused([](parts p, gradient&) { p.push_back(p[2]); }, "two gradients came for \"table\"; expected one");
  refused([](parts p, gradient&) { p.assign(7, p[0]); },
          "7 slices came for the 3 trainable variables of shard 2; expected a gradient for each, of one slice or of "
          "rows and values");
  refused([](parts p, gradient&) { p[0].begin = 3; },
          "the gradient of \"w\" begins at element 3; expected it whole, from element 0");
  refused([](parts p, gradient&) { p[0].bytes = p[0].bytes.first(44); },
          "the gradient of \"w\" has 11 elements; expected 12, those of [4, 3]");
  refused([](parts p, gradient&) { p[0].bytes = p[0].bytes.first(43); },
          "the slice of \"w\" has 43 bytes, which are no whole elements of float32");
  refused([](parts p, gradient&) { p[0].type = dtype::none; },
          "the slice of \"w\" has the element type 0, which is none");
  refused([](parts p, gradient&) { p[1].type = float32; },
          "the gradient of \"b\" is float32; expected float64, as the variable");
  refused([](parts p, gradient&) { p[3].type = float64; },
          "the gradient of \"table\" is float64; expected float32, as the variable");
  refused([](parts p, gradient&) { p[0].role = slice_role::values; },
          "the gradient of \"w\" [4, 3] comes as rows; expected a dense one");
  refused([](parts p, gradient&) { p[3].role = slice_role::dense; },
          "the gradient of \"table\" [5, 2] comes dense; expected rows and their values");
  refused([](parts p, gradient&) { p[1].role = slice_role::ids, p[1].type = uint64; },
          "the slice of \"b\" holds ids; expected a gradient");
  refused([](parts p, gradient&) { p.pop_back(); }, "the gradient of \"table\" has rows and no values; expected both");
  refused([](parts p, gradient&) { p.erase(p.begin() + 2); },
          "the gradient of \"table\" has values and no rows; expected both");
  refused([](parts p, gradient&) { p[3].bytes = p[3].bytes.first(12); },
          "the gradient of \"table\" has 3 values for 2 rows of 2; expected 4");
  refused([](parts, gradient& g) { g.rows[1] = 5; },
          "row 5 of the gradient of \"table\" is none; expected 0 to below 5");
  refused([](parts, gradient& g) { g.rows[0] = -1; },
          "row -1 of the gradient of \"table\" is none; expected 0 to below 5");
}
