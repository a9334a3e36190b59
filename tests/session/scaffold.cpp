#include <gradus/session/scaffold.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/session.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace gradus;

namespace {
template <class Error, class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "(nothing was refused)";
}
bool says(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }
}  // namespace

TEST_CASE("H1 nothing is made before finalize") {
  graph g;
  g.variable("my_var", {}, {.init = ones});
  const int nodes = g.nodes.count;
  scaffold parts;
  CHECK((!parts.init_op() && !parts.ready_op() && !parts.ready_for_local_init_op() && !parts.local_init_op()));
  CHECK((parts.saver() == nullptr && !parts.init_fn() && parts.init_feed_dict().empty()));
  CHECK((g.nodes.count == nodes && !g.is_finalized()));
}

TEST_CASE("H2 finalize fills init, ready, local init, saver; ready lists 'my_var', and nothing after init") {
  graph g;
  g.variable("my_var", {}, {.init = ones});
  g.variable("my_local_var", {}, {.init = ones, .trainable = false, .local = true});
  scaffold parts;
  parts.finalize(g);
  REQUIRE((parts.init_op() && parts.ready_op() && parts.ready_for_local_init_op() && parts.local_init_op()));
  CHECK(parts.saver() != nullptr);
  session s{g};
  const auto waits = [&](value op) { return uninitialized_names(g, op, s.run(op)); };
  CHECK(waits(parts.ready_op()) == std::vector<std::string>{"my_var", "my_local_var"});
  CHECK(waits(parts.ready_for_local_init_op()) == std::vector<std::string>{"my_var"});
  s.run(parts.init_op());
  CHECK(waits(parts.ready_op()) == std::vector<std::string>{"my_local_var"});
  CHECK(waits(parts.ready_for_local_init_op()).empty());
  s.run(parts.local_init_op());
  CHECK(waits(parts.ready_op()).empty());
  CHECK(s.variable("my_var").as<float>()[0] == 1);
}

TEST_CASE("H3 two scaffolds on one graph share what the first made") {
  graph g;
  g.variable("my_var", {}, {.init = ones});
  scaffold one, two;
  one.finalize(g);
  two.finalize(g);  // makes no node: the graph is finalized
  CHECK(one.init_op().id == two.init_op().id);
  CHECK(one.ready_op().id == two.ready_op().id);
  CHECK(one.ready_for_local_init_op().id == two.ready_for_local_init_op().id);
  CHECK(one.local_init_op().id == two.local_init_op().id);
}

TEST_CASE("H4 two in a collection that is looked at: More than one item; one that is given is not looked for") {
  for (const auto name :
       {collection::init_op, collection::ready_op, collection::ready_for_local_init_op, collection::local_init_op}) {
    graph g;
    const value a = g.group({}), b = g.group({});
    g.add_to(name, a), g.add_to(name, b);
    scaffold parts;
    const std::string why = refusal<failed_precondition>([&] { parts.finalize(g); });
    CHECK(says(why, "More than one item"));
    CHECK(says(why, std::string(name).c_str()));
    CHECK(!parts.is_finalized());
  }
  graph g;
  const value a = g.group({}), b = g.group({});
  g.add_to(collection::init_op, a), g.add_to(collection::init_op, b);
  scaffold parts({.init_op = b});
  CHECK(parts.finalize(g).init_op().id == b.id);
}

TEST_CASE("H5 given values are kept, and what a collection holds is taken") {
  graph g;
  const value init = g.group({}), ready = g.constant(0.0, boolean), local = g.group({}), guard = g.constant(1.0);
  const value found = g.group({});
  const auto saves = std::make_shared<saver<>>();
  int calls = 0;
  scaffold parts({.init_op = init,
                  .init_fn =
                      [&](scaffold& mine, base_session&) {
                        ++calls;
                        CHECK(mine.init_op().id == init.id);
                      },
                  .ready_op = ready,
                  .ready_for_local_init_op = guard,
                  .local_init_op = local,
                  .saver = saves});
  g.add_to(collection::init_op, found);
  parts.finalize(g);
  CHECK((parts.init_op().id == init.id && parts.ready_op().id == ready.id && parts.local_init_op().id == local.id));
  CHECK((parts.ready_for_local_init_op().id == guard.id && parts.saver() == saves));
  session s{g};
  parts.init_fn()(s);
  CHECK(calls == 1);
  graph h;
  const value in_collection = h.group({});
  h.add_to(collection::local_init_op, in_collection);
  CHECK(scaffold().finalize(h).local_init_op().id == in_collection.id);
}

TEST_CASE("H6 the graph is finalized: adding a node is an error; a second finalize does nothing") {
  graph g;
  scaffold parts;
  parts.finalize(g);
  CHECK(parts.is_finalized());
  CHECK(says(refusal<failed_precondition>([&] { g.constant(1.0, float32, {2}); }), "cannot be modified"));
  CHECK(says(refusal<failed_precondition>([&] { g.placeholder("x", {}); }), "cannot be modified"));
  parts.finalize(g);
}

TEST_CASE("H7 copy_from_scaffold: what is given here wins, the rest is the other's") {
  graph g;
  const value init = g.group({}), ready = g.constant(0.0), other = g.group({}), local = g.group({});
  const auto saves = std::make_shared<saver<>>();
  scaffold first({.init_op = init, .ready_op = ready, .local_init_op = local, .saver = saves});
  scaffold second(first, {.init_op = other});
  CHECK(second.init_op().id == other.id);
  CHECK((second.ready_op().id == ready.id && second.local_init_op().id == local.id && second.saver() == saves));
}
