#include <gradus/train/hook.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace gradus;

namespace {
using lines = std::vector<std::string>;

struct all_of_them {
  using policy_for = kind::hook;
  lines* said;
  std::string name;
  std::int64_t stop_at = -1;

  void begin() { said->push_back(name + " begin"); }
  void after_create_session(hooked_session& s) { said->push_back(text(name, " session ", s.global_step())); }
  void before_run(run_context& c) { said->push_back(text(name, " before ", c.session().global_step())); }
  void after_run(run_context& c, const run_values& v) {
    said->push_back(text(name, " after ", v.global_step, c.stop_requested() ? " stopping" : ""));
    if (v.global_step == stop_at) c.request_stop();
  }
  void end(hooked_session& s) { said->push_back(text(name, " end ", s.global_step())); }
};
struct listener {
  using policy_for = kind::saving_listener;
  lines* said;
  std::string name;
  bool stops = false;

  void begin() { said->push_back(name + " begin"); }
  void before_save(hooked_session& s, std::int64_t step) {
    said->push_back(text(name, " before ", step, " of ", s.global_step()));
  }
  bool after_save(hooked_session&, std::int64_t step) {
    said->push_back(text(name, " after ", step));
    return stops;
  }
  void end(hooked_session&, std::int64_t step) { said->push_back(text(name, " end ", step)); }
};
// One member each, and none of the others.
struct only_after {
  using policy_for = kind::hook;
  int* calls;
  void after_run(run_context&, const run_values&) const { ++*calls; }
};
struct only_tells {
  using policy_for = kind::saving_listener;
  int* calls;
  void after_save(const hooked_session&, const std::int64_t&) const { ++*calls; }  // what can be called is enough
};
static_assert(std::is_same_v<detail::hooks_among<int, double>, detail::hook_list<>>);
static_assert(std::is_same_v<detail::hooks_among<int, listener, all_of_them, listener>,
                             detail::hook_list<listener, all_of_them, listener>>);
}  // namespace

TEST_CASE("hooks are called in the order in which they are given, listeners begin and end before them") {
  lines said;
  detail::hooks_among<all_of_them, listener, all_of_them> h(all_of_them{&said, "a", 2}, 5, listener{&said, "l"},
                                                            all_of_them{&said, "b"});
  h.begin();
  CHECK(said == lines{"l begin", "a begin", "b begin"});
  said.clear();
  state_list none;
  h.bind(none, 1, nullptr, nullptr);
  h.after_create_session();
  h.before_run();
  CHECK(said == lines{"a session 1", "b session 1", "a before 1", "b before 1"});
  said.clear();
  h.values().global_step = 2;
  CHECK(h.after_run());
  CHECK(said == lines{"a after 2", "b after 2 stopping"});
  said.clear();
  h.before_run();  // another step begins without a request
  h.values().global_step = 3;
  CHECK(!h.after_run());
  said.clear();
  h.before_save(7);
  CHECK(!h.after_save(7));
  h.end(8);
  CHECK(said == lines{"l before 7 of 7", "l after 7", "l end 8", "a end 8", "b end 8"});
}

TEST_CASE("a listener that asks for a stop does not keep the others from being told") {
  lines said;
  detail::hooks_among<listener, listener> h(listener{&said, "a", true}, listener{&said, "b"});
  CHECK(h.after_save(3));
  CHECK(said == lines{"a after 3", "b after 3"});
}

TEST_CASE("one member is enough, and a listener that gives nothing asks for nothing") {
  int calls = 0;
  detail::hooks_among<only_after, only_tells> h(only_after{&calls}, only_tells{&calls});
  h.begin(), h.after_create_session(), h.before_run(), h.before_save(1), h.end(1);
  CHECK(calls == 0);
  CHECK(!h.after_run());
  CHECK(!h.after_save(1));
  CHECK(calls == 2);
}

TEST_CASE("a session shows its variables by name, and names them where there is no such one") {
  struct : detail::hook_calls {
  } h;
  CHECK_THROWS_WITH_AS(h.session().variable("w"), doctest::Contains("the session has no variable \"w\""), not_found);
  struct stream : blob {
    void save(std::vector<std::byte>&) const override {}
    void load(std::span<const std::byte>) override {}
  } random;
  std::vector<float> w{1, 2};
  std::int64_t step = 5;
  state_list list;
  list.tensor<float>("w", {2}, w);
  list.dynamic("random", random);
  list.scalar("global_step", step);
  h.bind(list, 5, nullptr, nullptr);
  CHECK(h.session().global_step() == 5);
  w[1] = 3;  // as it is now
  CHECK(h.session().variable("w").as<float>()[1] == 3);
  CHECK(h.session().variable("global_step").as<std::int64_t>()[0] == 5);
  CHECK_THROWS_WITH_AS(h.session().variable("random"), "the session has no variable \"random\"; it has w, global_step",
                       not_found);
}
