// costs: 300
// A session whose graph runs on a server: what it computes, shares, keeps, and how it ends.
#include <gradus/checkpoint/saver.hpp>
#include <gradus/checkpoint/var_list.hpp>
#include <gradus/cluster/remote_session.hpp>
#include <gradus/codec/flat.hpp>
#include <gradus/ops/elementwise.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/random.hpp>
#include <gradus/ops/reduce.hpp>
#include <gradus/pass/autodiff.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/session_service.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "../message.hpp"
#include "../whole/session_facts.hpp"
#include "session_ends.hpp"

using namespace session_ends;

namespace {
struct met {
  hub h;
};
struct over_calls : met, session_facts::over<looped> {
  static constexpr std::size_t large = 1'000'000;
  over_calls() : over(looped{&h, "one"}, one_task) {}
};
}  // namespace
SESSION_FACTS(over_calls);

TEST_CASE("a queue of the server is no object of a remote session; a session is closed while its run is under way") {
  serving at;
  graph g;
  graph_queue q(g, make_queue_spec(queue_kind::fifo, 8, {float32}, {.shapes = {{}}, .name = "q"}));
  const value got = q.dequeue()[0];
  remote_session s(target, g, at.from("one"), quick());
  CHECK_THROWS_AS(q.in(s), unimplemented);
  for (int round = 0; round < 20; ++round) {  // the server may get the close before the run has begun there
    std::string said;
    remote_session waiting(target, g, at.from("waits"), quick());
    std::atomic<bool> was_sent = false;
    at.h.saw = [&](std::span<const std::byte> frame) {
      if (is_run(frame)) was_sent = true;
    };
    std::thread waits([&] {
      try {
        waiting.run(got);
      } catch (const cancelled& e) {
        said = text("Closed: ", e.what());
      } catch (const failed_precondition& e) {
        said = text("Refused: ", e.what());
      }
    });
    while (!was_sent) std::this_thread::yield();
    waiting.close();
    waits.join();
    at.h.saw = nullptr;
    CAPTURE(said);
    CHECK(says(said, "Closed: "));
    CHECK(says(said, "the session was closed"));
  }
}

TEST_CASE("a model with layers, dropout, a convolution and metrics has the bits of a session of this process") {
  serving at;
  graph g;
  const value x = g.placeholder("x", {batch, 6, 6, 2});
  const value c = relu(conv2d(x, {.filters = 4, .kernel_size = 3, .name = "conv"}));
  const value hdn = dropout(dense(flatten(c), {.units = 5, .name = "h"}), 0.5f);
  const value loss = reduce_mean(hdn * hdn);
  const value kernel = g.by_name("h/kernel");
  const auto grads = gradients(g, {&loss, 1}, {&kernel, 1});
  session local{g};
  remote_session remote(target, g, at.from("one"), quick());
  local.initialize(42), remote.initialize(42);
  std::vector<float> data(3 * 72);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i % 13) / 7 - 1;
  for (int step = 0; step < 5; ++step) {
    const std::vector<fetch> what{fetch(loss), fetch(hdn), fetch(grads[0].dense)};
    const std::vector<feed> in{{x, data}};
    const auto mine = local.run(std::span<const fetch>(what), std::span<const feed>(in));
    const auto theirs = remote.run(std::span<const fetch>(what), std::span<const feed>(in));
    for (std::size_t i = 0; i < what.size(); ++i) {
      CHECK(mine[i].dims == theirs[i].dims);
      CHECK(std::equal(mine[i].bytes().begin(), mine[i].bytes().end(), theirs[i].bytes().begin()));
    }
  }
  CHECK(remote.variable("random_step").as<std::int64_t>()[0] == 4);
}

TEST_CASE("a saver saves and restores variables of a server; what is written here is sent with the next call") {
  serving at;
  const testing::temp_dir place;
  graph g;
  const value v = g.variable("v", {2}, {.init = zeros}), w = g.variable("w", {3}, {.init = ones});
  const value add = assign_add(v, g.constant({1, 2}, {2}));
  remote_session s(target, g, at.from("one"), quick());
  s.initialize();
  s.run(add);
  saver<flat_binary> keeps;
  const auto all = [&] {
    state_list list;
    s.remembers(list);
    return list;
  };
  const std::string file = place / "model";
  keeps.save(all(), file, 1);
  s.run(add);
  CHECK(s.variable("v").as<float>()[1] == 4);
  keeps.restore(all(), text(file, "-1.ckpt"));
  CHECK(s.run(v).as<float>()[1] == 2);
  s.mutable_variable("w").mutable_as<float>()[2] = 7;
  CHECK(s.run(w).as<float>()[2] == 7);
  CHECK(s.run(w).as<float>()[0] == 1);
}

TEST_CASE("a write that the server refuses is sent again with the next call") {
  hub h;
  const server here(looped{&h, "server"}, one_task);
  const session_service there{here, session_limits{.bytes = 3000}};
  graph g;
  const value v = g.variable("v", {}, {.init = ones}), w = g.variable("w", {1000}, {.init = zeros});
  remote_session s(target, g, looped{&h, "one"}, quick());
  s.initialize();
  CHECK(s.run(v).as<float>()[0] == 1);
  s.mutable_variable("w").mutable_as<float>()[0] = 7;
  for (int i = 0; i < 2; ++i)
    CHECK(says(message_of(status::resource_exhausted, [&] { s.run(v); }), "the limit `bytes`"));
  static_cast<void>(w);
}

TEST_CASE("a state list of a remote session that is taken once saves and restores what the server has then") {
  serving at;
  const testing::temp_dir place;
  graph g;
  const value v = g.variable("v", {1}, {.init = zeros}), w = g.variable("w", {1}, {.init = zeros});
  const value add = assign_add(v, g.constant({1}, {1}));
  remote_session s(target, g, at.from("one"), quick());
  s.initialize();
  state_list list;
  s.remembers(list);
  const state_list renamed_list = renamed(list, {{"other", "v"}});
  saver<flat_binary> keeps, keeps_other;
  const std::string file = place / "model", other = place / "other";
  for (int k = 1; k <= 3; ++k) {
    s.run(add);
    keeps.save(list, file, k);
  }
  keeps_other.save(renamed_list, other, 1);
  for (const int k : {1, 3, 2, 2, 1}) {
    CAPTURE(k);
    keeps.restore(list, text(file, "-", k, ".ckpt"));
    CHECK(s.run(v).as<float>()[0] == static_cast<float>(k));
    s.run(add);
  }
  keeps_other.restore(renamed_list, text(other, "-1.ckpt"));
  CHECK(s.run(v).as<float>()[0] == 3);
  // So does a view that was fetched once, each time that it is written to.
  const tensor_view memory = s.mutable_variable("w");
  for (int k = 1; k <= 3; ++k) {
    memory.mutable_as<float>()[0] = static_cast<float>(k);
    CHECK(s.run(w).as<float>()[0] == static_cast<float>(k));
  }
}
