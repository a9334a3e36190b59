#include <gradus/train/any_hook.hpp>

#include <gradus/ops/elementwise.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

using namespace gradus;

namespace {
struct all_five {
  std::string seen;
  void begin() { seen += "b"; }
  void after_create_session(hooked_session&) { seen += "c"; }
  session_run_args before_run(run_context&) {
    seen += "r";
    return {.options = {.trace = trace_level::full_trace}};
  }
  void after_run(run_context&, const run_values&) { seen += "a"; }
  void end(hooked_session&) { seen += "e"; }
};
struct only_end {
  int* calls;
  void end(hooked_session&) { ++*calls; }
};
struct asks_nothing {
  int* calls;
  void before_run(run_context&) { ++*calls; }
};
session_run_args call(const any_hook& h) {
  hooked_session s;
  run_context c;
  run_values v;
  h.begin(), h.after_create_session(s);
  session_run_args args = h.before_run(c);
  h.after_run(c, v), h.end(s);
  return args;
}
}  // namespace

TEST_CASE("any_hook calls what the hook has, in every way to hold it") {
  all_five by_reference;
  const auto shared = std::make_shared<all_five>();
  for (const any_hook& h : {any_hook(std::ref(by_reference)), any_hook(shared), any_hook(all_five{})})
    CHECK(call(h).options.trace == trace_level::full_trace);
  CHECK((by_reference.seen == "bcrae" && shared->seen == "bcrae"));
  int ends = 0, runs = 0;
  CHECK(call(only_end{&ends}).fetches.empty());
  CHECK(call(asks_nothing{&runs}).feeds.empty());
  CHECK((ends == 1 && runs == 1));
  const any_hook one(shared), same = one;  // copies are the same hook
  call(same);
  CHECK(shared->seen == "bcraebcrae");
}

namespace {
struct adds_ops {
  graph** given;
  void begin(graph& g) { *given = &g; }
};
struct adds_ops_or_not {
  std::string* seen;
  void begin() { *seen += "alone "; }
  void begin(graph&) { *seen += "graph "; }
};
}  // namespace

TEST_CASE("begin(graph&) gets the graph that a session will have, and is refused where there is none") {
  graph g;
  graph* given = nullptr;
  any_hook(adds_ops{&given}).begin(&g);
  CHECK(given == &g);
  std::string why;
  try {
    any_hook(adds_ops{&given}).begin();
  } catch (const failed_precondition& e) {
    why = e.what();
  }
  CHECK(why.find("begin(graph&) adds ops to the graph of a session, and here is none") != std::string::npos);
  std::string seen;
  any_hook(adds_ops_or_not{&seen}).begin(&g);
  any_hook(adds_ops_or_not{&seen}).begin();
  CHECK(seen == "graph alone ");
}
