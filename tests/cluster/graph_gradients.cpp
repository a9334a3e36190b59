// What the tasks of a cluster compare of a session's graph, and the values that are staged for it.
#include <gradus/cluster/graph_gradients.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/run/session.hpp>
#include <gradus/session/global_step.hpp>
#include <gradus/update/rules/adam.hpp>

#include <doctest/doctest.h>

#include <string>

#include "../message.hpp"

namespace {
using namespace gradus;
using update_type = detail::update_among<adam>;
using passed_on = detail::graph_gradients<update_type, default_device>;

// A graph that trains w, with what only some tasks have around it.
struct task {
  graph g;
  optimizer<default_device, adam> opt{adam{.rate = 0.1}};
  detail::built_train_op<update_type> built;

  explicit task(bool has_more, double factor = 2) {
    if (has_more) (void)(g.variable("mine", {3}) * 5.0);
    const value w = g.variable("w", {2}, {.init = ones}), step = create_global_step(g);
    if (has_more) g.summary_scalar("shown", reduce_sum(w));
    const value train = opt.minimize(reduce_sum(square(w) * factor), {.global_step = step});
    built.plan.g = &g, built.plan.step = step.id, built.plan.finish = train.id;
    auto& p = built.plan.updates.emplace_back();
    p.name = "w", p.dims = {2}, p.type = float32;
    p.slots.fill(-1);
    p.slots[0] = g.find("w/Adam"), p.slots[1] = g.find("w/Adam_1");
    for (const char* own : {"beta1_power", "beta2_power"})
      built.own.push_back({&g, g.find(own), -1, own, 0, false, std::vector<std::byte>(8)});
  }
};
}  // namespace

TEST_CASE("tasks compare what their train op needs, and nothing else of their graphs") {
  task plain(false), more(true), other(false, 3);
  const std::string one = passed_on(plain.built, plain.opt.update()).shown_model();
  CHECK(passed_on(more.built, more.opt.update()).shown_model() == one);
  CHECK(passed_on(other.built, other.opt.update()).shown_model() != one);
}

TEST_CASE("values are staged until the train op takes them; a change by something else is refused by name") {
  task t(true);
  session_resources box;
  session s(box, t.g, t.opt);
  passed_on steps(t.built, t.opt.update());
  steps.connect(box);
  CHECK(!steps.has_first_values());
  s.initialize(1);
  CHECK(steps.has_first_values());
  CHECK((steps.is_held("w") && !steps.is_held("mine") && !steps.is_held("w/Adam")));
  CHECK((steps.is_behind("w/Adam_1") && steps.is_behind("beta1_power") && !steps.is_behind("w")));
  steps.stage();
  steps.check_unchanged();

  state_list list;
  steps.remembers(list);  // as shards name it
  const state_entry* const w = list.find("w");
  REQUIRE(w != nullptr);
  CHECK((list.find("w/Adam") != nullptr && list.find("beta2_power") != nullptr && list.find("mine") == nullptr));
  reinterpret_cast<float*>(w->bytes.data())[0] = 7;
  CHECK(s.variable("w").as<float>()[0] == 1);
  CHECK(says(message_of(status::failed_precondition, [&] { steps.check_unchanged(); }), "variable \"w\" was changed"));
  steps.count_to(5);
  steps.set_all();
  CHECK(s.variable("w").as<float>()[0] == 7);
  CHECK(s.variable("global_step").as<std::int64_t>()[0] == 5);
}
