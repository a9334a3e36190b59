#include "gradus/checkpoint/warm_start_settings.hpp"

#include <doctest/doctest.h>

using namespace gradus;

namespace {
using names = std::vector<std::string>;

// v1 to v2/Momentum: the variables of the documentation. Of emb two parts live here.
std::vector<warm_start_target> variables() {
  std::vector<warm_start_target> out;
  for (const char* name : {"v1", "v1/Momentum", "v10", "v2", "v2/momentum", "global_step"}) {
    warm_start_target t;
    t.name = name;
    t.trainable = std::string_view(name).find('/') == std::string_view::npos && t.name != "global_step";
    out.push_back(t);
  }
  for (const char* name : {"emb/part_0", "emb/part_1"}) {
    warm_start_target t;
    t.name = name;
    t.slice = slice_of{"emb", {}, {}, {}};
    out.push_back(t);
  }
  return out;
}
names chosen(const variables_to_warm_start& which, bool whole = false) {
  const auto all = variables();
  names out;
  for (const auto& g : detail::chosen(all, {.vars_to_warm_start = which, .match_whole_names = whole}))
    out.push_back(g.parts.size() == 1 ? g.name : text(g.name, '*', g.parts.size()));
  return out;
}
std::string refusal(status kind, const variables_to_warm_start& which) {
  try {
    chosen(which);
  } catch (const error& e) {
    CHECK(e.kind() == kind);
    return e.what();
  }
  return {};
}
}  // namespace

TEST_CASE("which variables are chosen: TensorFlow's table") {
  const names trainable{"v1", "v10", "v2", "emb*2"};
  const names all{"v1", "v1/Momentum", "v10", "v2", "v2/momentum", "global_step", "emb*2"};
  CHECK(chosen({}) == trainable);  // the default, ".*"
  CHECK(chosen(".*") == trainable);
  CHECK(chosen("") == trainable);
  CHECK(chosen(std::nullopt) == trainable);
  CHECK(chosen({".*"}) == all);
  CHECK(chosen({"v1", "v2[^/]"}) == names{"v1", "v1/Momentum", "v10", "v2"});
  CHECK(chosen("v1") == names{"v1", "v10"});
  CHECK(chosen("v1:0") == names{"v1"});
  CHECK(chosen("v1$").empty());
  CHECK(chosen("1").empty());                         // anchored at the start
  CHECK(chosen(".*1") == names{"v1", "v10", "emb"});  // of emb, only part_1
  CHECK(chosen("emb") == names{"emb*2"});
  CHECK(chosen({"v2", "v2", "v.*"}) == names{"v1", "v1/Momentum", "v10", "v2", "v2/momentum"});  // each once
  CHECK(chosen({variable_named{"v1/Momentum"}, variable_named{"emb"}}) == names{"v1/Momentum", "emb*2"});
  CHECK(chosen(names{}).empty());
  CHECK(chosen(names{"v10", "global_step"}) == names{"v10", "global_step"});
  CHECK(chosen(std::vector<variable_named>{{"v2"}}) == names{"v2"});
}

TEST_CASE("whole names on request") {
  CHECK(chosen("v1", true) == names{"v1"});
  CHECK(chosen({"v1:0", "v2/.*"}, true) == names{"v1", "v2/momentum"});
}

TEST_CASE("what is not understood is refused") {
  CHECK(refusal(status::invalid_argument, {"v1", variable_named{"v2"}}).find("both expressions and variables") !=
        std::string::npos);
  CHECK(refusal(status::invalid_argument, "(").find("\"(\" is no regular expression") != std::string::npos);
  CHECK(refusal(status::not_found, {variable_named{"v3"}}).find("\"v3\", which is not here") != std::string::npos);
}

TEST_CASE("names in a map that stand for nothing") {
  const auto all = variables();
  const auto groups = detail::chosen(all, {.vars_to_warm_start = "v"});
  detail::check_used(std::map<std::string, int>{{"v1", 1}}, groups, "some_map");
  try {
    detail::check_used(std::map<std::string, int>{{"v1", 1}, {"v1/Momentum", 2}, {"v3", 3}}, groups, "some_map");
    FAIL("nothing was refused");
  } catch (const invalid_argument& e) {
    CHECK(std::string(e.what()) ==
          "some_map has variables that are not warm-started: \"v1/Momentum\", \"v3\". Perhaps they are misspelled, or "
          "not chosen by vars_to_warm_start, which takes \"v1\", \"v10\", \"v2\". Nothing was changed.");
  }
}
