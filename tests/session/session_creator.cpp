#include <gradus/session/session_creator.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/session.hpp>
#include <gradus/testing/faulty_files.hpp>
#include <gradus/testing/hand_tasks.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>

using namespace gradus;
using gradus::testing::faulty_files;

TEST_CASE("the chief initializes, saves and is restored; a worker waits for it, and makes its own local variables") {
  testing::hand_tasks hand;
  graph g;
  const value v = g.variable("v", {}, {.init = constant_initializer(3)});
  const value w = variable_from("w", v, {.trainable = false, .local = true});
  const value more = assign_add(v, g.constant(1.0));
  const faulty_files files;
  const auto saves = std::make_shared<saver<flat_binary, faulty_files>>(saver_options{}, flat_binary{}, files);
  session_resources box;
  scaffold parts({.saver = saves});
  worker_session_creator worker(sessions_of(g, shared_resources(box)), g, parts,
                                {.max_wait_secs = 100, .recovery_wait_secs = 1}, hand.tasks());
  chief_session_creator chief(sessions_of(g, shared_resources(box)), g, parts, {.checkpoint_dir = "runs"});
  parts.finalize(g);
  std::unique_ptr<base_session> of_worker;
  auto waits = hand.tasks().start("a test", "do without", [&] { of_worker = worker.create_session(); });
  hand.advance(3);
  CHECK(of_worker == nullptr);
  const auto of_chief = chief.create_session();
  CHECK(g.is_finalized());
  CHECK(of_chief->variable("v").as<float>()[0] == 3);
  hand.advance(1);
  waits.join();
  REQUIRE(of_worker != nullptr);
  CHECK(of_worker->variable("w").as<float>()[0] == 3);
  of_worker->run(more);
  CHECK(of_chief->variable("v").as<float>()[0] == 4);
  state_list list;
  of_chief->remembers(list);
  saves->save(list, "runs/model", 1);
  of_worker->run(more);

  session_resources other;
  chief_session_creator again(sessions_of(g, shared_resources(other)), g, parts, {.checkpoint_dir = "runs"});
  const auto restored = again.create_session();
  CHECK(restored->variable("v").as<float>()[0] == 4);
  chief_session_creator by_path(sessions_of(g), g, parts, {.checkpoint_filename_with_path = "runs/model-1.ckpt"});
  CHECK(by_path.create_session()->variable("v").as<float>()[0] == 4);
  CHECK(w.type() == float32);
}

TEST_CASE("a worker gives up after max_wait_secs") {
  testing::hand_tasks hand;
  graph g;
  g.variable("v", {}, {.init = ones});
  scaffold parts;
  worker_session_creator worker(sessions_of(g), g, parts, {.max_wait_secs = 1800}, hand.tasks());
  bool late = false;
  auto waits = hand.tasks().start("a test", "do without", [&] {
    try {
      worker.create_session();
    } catch (const deadline_exceeded&) {
      late = true;
    }
  });
  hand.advance(1799);
  CHECK(!late);
  hand.advance(1);
  waits.join();
  CHECK(late);
}
