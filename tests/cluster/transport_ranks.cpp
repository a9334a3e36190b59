// costs: 300
// Training by all_reduce among processes: here in one process, over a transport of calls that may lose frames.
#include <gradus/cluster/all_reduce.hpp>
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/transport_ranks.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../message.hpp"
#include "../train/run_files.hpp"
#include "../whole/cluster_models.hpp"
#include "../whole/cluster_runs.hpp"
#include "lossy_transport.hpp"
#include "session_ends.hpp"

namespace {
using namespace gradus;
using cluster_models::mlp;
using cluster_models::points;
using cluster_runs::config_of;
using cluster_runs::trained;
using loop::hub;
using loop::losing;
using session_ends::counting;
using session_ends::quick;
using testing::temp_dir;

const cluster_spec three{{"worker", {"w0", "w1", "w2"}}};
// The program of each task, as of a process; what it threw, "" for nothing. Ranks that say things again soon.
std::map<std::string, std::string> tasks_of(hub& h, std::uint64_t every, const std::function<void(server&)>& program) {
  std::map<std::string, std::string> said;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int k = 0; k < 3; ++k)
    threads.emplace_back([&, k] {
      std::string what;
      try {
        const server_def def{.cluster = three, .job_name = "worker", .task_index = k};
        const losing by{{&h, text("w", k)}, every};
        server here(def,
                    std::make_shared<detail::transport_ranks>(
                        def, by.make({}), task_system(), detail::rank_options{.retry_secs = 0.005, .close_secs = 0.2}),
                    {});
        program(here);
      } catch (const std::exception& e) {
        what = e.what();
      }
      const std::lock_guard lock(mutex);
      said[text("worker ", k)] = what;
    });
  for (auto& t : threads) t.join();
  return said;
}
template <class... More>
auto make(const std::string& dir, const More&... more) {
  return make_trainer<mlp>(more..., adam{.rate = 0.01}, clip_by_global_norm{0.5},
                           exponential_moving_average{.decay = 0.9}, config_of(dir));
}
void train(server& here, const std::string& dir, std::int64_t steps) {
  const points data;
  auto t = make(dir, connected{here}, all_reduce{.bucket_bytes = 1000});
  t.train(data.batches(4).shard(here.workers(), here.worker()), {.max_steps = steps});
}
}  // namespace

TEST_CASE("three processes have the bits of one, whatever frames are lost or said twice, and go on after a restart") {
  const temp_dir place;
  const points data;
  for (const std::int64_t steps : {12, 20}) {
    auto alone = make(place / "alone", microbatch{3});
    alone.train(data.batches(12), {.max_steps = steps});
    for (const std::uint64_t every : {0u, 4u}) {
      CAPTURE(every);
      hub h;
      const std::string dir = place / text("every", every);
      const auto said = tasks_of(h, every, [&](server& here) {
        CHECK(here.workers() == 3);
        train(here, dir, steps);
        here.finish();
      });
      for (const auto& [task, what] : said) CHECK_MESSAGE(what == "", task);
      CHECK(run_files::difference(trained(dir), trained(place / "alone")) == "");
    }
  }
}

TEST_CASE("a rank runs sessions at the port of its training, while it trains, and then none") {
  const temp_dir place;
  const auto run = [&](const std::string& dir, bool with_sessions) {
    hub h;
    const auto said = tasks_of(h, 0, [&](server& here) {
      if (!with_sessions || here.worker() != 0) return train(here, dir, 20), here.finish();
      std::thread trains([&] { train(here, dir, 20); });
      {
        const session_service there{here};
        counting k;
        remote_session s("loop://w0", k.g, loop::looped{&h, "client"}, quick());
        s.initialize();
        for (int i = 0; i < 30; ++i) s.run(k.add);
        CHECK(s.run(k.v).as<float>()[0] == 30);
      }
      trains.join();
      graph g;
      CHECK(says(message_of(status::failed_precondition,
                            [&] {
                              remote_session("loop://w0", g, loop::looped{&h, "late"}, quick());
                            }),
                 "worker 0 runs no sessions"));
      here.finish();
    });
    for (const auto& [task, what] : said) CHECK_MESSAGE(what == "", task);
    return trained(dir);
  };
  CHECK(run_files::difference(run(place / "with", true), run(place / "without", false)) == "");
}

TEST_CASE("a rank that fails ends the others, who name it and its error") {
  const temp_dir place;
  hub h;
  const auto said = tasks_of(h, 0, [&](server& here) {
    if (here.worker() != 1) return train(here, place / "a", 1000);
    train(here, place / "a", 5);
    throw std::runtime_error("this one is tired");
  });
  CHECK(said.at("worker 1") == "this one is tired");
  // It has left after a step, so the others stop or say so.
  for (const char* other : {"worker 0", "worker 2"}) CHECK_MESSAGE(!says(said.at(other), "internal"), said.at(other));
}

TEST_CASE("a rank that comes back as another process in the middle of a run ends the cluster, and says what to do") {
  hub h;
  const auto task = [&](int index) {
    return std::make_unique<server>(
        losing{{&h, text("w", index)}, 0},
        server_def{.cluster = {{"worker", {"w0", "w1"}}}, .job_name = "worker", .task_index = index});
  };
  const auto a = task(0);
  auto b = task(1);
  std::thread votes([&] { CHECK(b->network()->ranks()->all_take_part(true)); });
  CHECK(a->network()->ranks()->all_take_part(true));
  votes.join();
  h.cut("w1");
  auto other = task(1);
  const std::string said =
      message_of(status::aborted, [&] { static_cast<void>(a->network()->ranks()->all_take_part(true)); });
  CHECK(says(said, "worker 1 at w1 was started again in the middle of a run"));
  CHECK(says(said, "start all tasks again"));
}

TEST_CASE("what a new process sends to one of the run before is not taken for sent: its next process gets it") {
  hub h;
  const auto task = [&](int index) {
    return std::make_unique<server>(
        losing{{&h, text("w", index)}, 0},
        server_def{.cluster = {{"worker", {"w0", "w1"}}}, .job_name = "worker", .task_index = index});
  };
  auto a = task(0), b = task(1);
  std::vector<std::byte> x(3, std::byte{7}), y(3);
  for (int n = 0; n < 2; ++n) {
    const auto ranks = b->network()->ranks();
    ranks->wait(ranks->send(0, x));
    a->network()->ranks()->wait(a->network()->ranks()->receive(1, y));
  }
  b.reset();  // it has done its part; the other one is still there when the next run begins
  b = task(1);
  detail::rank_network& rb = *b->network()->ranks();
  rb.wait(rb.send(0, x));  // numbered as what the process before has sent
  a.reset();
  a = task(0);
  std::fill(y.begin(), y.end(), std::byte{});
  bool both = false;
  std::thread votes([&] {
    try {
      detail::rank_network& ra = *a->network()->ranks();
      ra.wait(ra.receive(1, y));
      both = ra.all_take_part(true);
    } catch (const aborted&) {  // the other has ended
    }
  });
  try {
    CHECK(rb.all_take_part(true));
  } catch (const aborted& e) {
    FAIL_CHECK(e.what());
    b.reset();
  }
  votes.join();
  CHECK(both);
  CHECK(y == x);
}

TEST_CASE("a rank that has left takes part in nothing, and one that waits for its gradients is told") {
  hub h;
  const server a(losing{{&h, "w0"}, 0},
                 server_def{.cluster = {{"worker", {"w0", "w1"}}}, .job_name = "worker", .task_index = 0});
  auto b = std::make_unique<server>(
      losing{{&h, "w1"}, 0}, server_def{.cluster = {{"worker", {"w0", "w1"}}}, .job_name = "worker", .task_index = 1});
  detail::rank_network& ra = *a.network()->ranks();
  detail::rank_network& rb = *b->network()->ranks();
  std::vector<std::byte> x(3, std::byte{7}), y(3), z(2);
  rb.wait(rb.send(0, x));
  ra.wait(ra.receive(1, y));
  CHECK(y == x);
  rb.wait(rb.send(0, x));
  CHECK(says(message_of(status::internal, [&] { ra.wait(ra.receive(1, z)); }), "sent 3 bytes"));
  CHECK(a.members()[1].state == cluster_member::alive);
  b.reset();
  CHECK_FALSE(ra.all_take_part(true));
  CHECK(a.members()[1].state == cluster_member::left);
  CHECK(a.members()[0].task == "worker 0");
  CHECK(says(message_of(status::aborted, [&] { ra.wait(ra.receive(1, y)); }),
             "worker 1 has ended its program in the middle of a step, while worker 0 waited for it"));
}

TEST_CASE("parameter servers are what these workers have not; ranks that do not come are waited for so long") {
  hub h;
  const temp_dir place;
  const server_def def{.cluster = {{"worker", {"w0", "w1"}}}, .job_name = "worker", .task_index = 0};
  const server here(losing{{&h, "w0"}, 0}, def);
  CHECK(says(message_of(status::invalid_argument,
                        [&] { static_cast<void>(make(place / "a", connected{here}, sync_replicas{})); }),
             "take parameter servers, and this cluster has none"));
  CHECK(says(message_of(status::invalid_argument,
                        [&] { static_cast<void>(make(place / "a", connected{here}, all_reduce{.sum = library_sum})); }),
             "library_sum"));
  const server_def apart{.cluster = {{"worker", {"x0", "w1"}}}, .job_name = "worker", .task_index = 0};
  detail::transport_ranks impatient(apart, losing{{&h, "x0"}, 0}.make({}), {},
                                    {.connect_secs = 0.02, .retry_secs = 0.01});
  const std::string said =
      message_of(status::deadline_exceeded, [&] { static_cast<void>(impatient.all_take_part(true)); });
  CHECK(says(said, "worker 1 at w1 has not come for 0.02 s"));
}

// As where it was killed after all others had ended, and before it had ended itself.
TEST_CASE("a chief that is started again when the last step is saved, and nobody else, ends without an error") {
  const temp_dir place;
  const auto train_alone = [&](std::int64_t steps, const auto&... more) {
    const points data;
    auto t = make(place / "run", more...);
    t.train(data.batches(4).shard(2, 0), {.max_steps = steps});
    CHECK(t.global_step() == steps);
  };
  train_alone(5);
  const auto task = [](hub& h) {
    const server_def def{.cluster = {{"worker", {"w0", "w1"}}}, .job_name = "worker", .task_index = 0};
    const losing by{{&h, "w0"}, 0};
    const detail::rank_options o{.connect_secs = 0.02, .retry_secs = 0.01};
    return std::make_unique<server>(def, std::make_shared<detail::transport_ranks>(def, by.make({}), task_system(), o),
                                    task_system());
  };
  hub h;
  {
    const auto chief = task(h);
    train_alone(5, connected{*chief}, all_reduce{});
    chief->finish();
  }
  const auto chief = task(h);
  CHECK(says(message_of(status::deadline_exceeded, [&] { train_alone(6, connected{*chief}, all_reduce{}); }),
             "worker 1 at w1 has not come for 0.02 s"));
}

TEST_CASE("a rank that fails between two steps has not ended its part: who begins a step, or waits for it, is told") {
  hub h;
  const auto task = [&](int index) {
    return std::make_unique<server>(
        losing{{&h, text("w", index)}, 0},
        server_def{.cluster = {{"worker", {"w0", "w1"}}}, .job_name = "worker", .task_index = index});
  };
  const auto a = task(0), b = task(1);
  detail::rank_network& ra = *a->network()->ranks();
  b->network()->ranks()->fail(std::make_exception_ptr(std::runtime_error("the disk is gone")));
  std::vector<std::byte> x(3);
  CHECK(message_of(status::aborted, [&] { static_cast<void>(ra.all_take_part(true)); }) ==
        "the cluster has ended, while worker 0 waited for the others to begin a step: worker 1 has failed: the disk is "
        "gone");
  CHECK(message_of(status::aborted, [&] { ra.wait(ra.receive(1, x)); }) ==
        "the cluster has ended, while worker 0 waited for the gradients of others: worker 1 has failed: the disk is "
        "gone");
}

TEST_CASE("a rank that sends more than early_bytes before it is expected ends the cluster at once, and both say why") {
  hub h;
  const auto rank_of = [&](int index) {
    return std::make_unique<detail::transport_ranks>(
        server_def{.cluster = {{"worker", {"w0", "w1"}}}, .job_name = "worker", .task_index = index},
        losing{{&h, text("w", index)}, 0}.make({}), task_system(),
        detail::rank_options{.silence_secs = 5, .early_bytes = 8});
  };
  auto a = rank_of(0);
  const auto b = rank_of(1);
  const std::vector<std::byte> five(5, std::byte{7}), three(3, std::byte{9});
  std::vector<std::byte> got(5), rest(3);
  // So many may come, and as many again behind them.
  for (int n = 0; n < 2; ++n) {
    b->wait(b->send(0, five)), b->wait(b->send(0, three));
    a->wait(a->receive(1, got)), a->wait(a->receive(1, rest));
    CHECK((got == five && rest == three));
  }
  b->wait(b->send(0, five)), b->wait(b->send(0, five)), b->wait(b->send(0, three));
  const std::string words =
      "worker 1 has sent 10 bytes before worker 0 waited for them; expected 8 at most (early_bytes of rank_options). "
      "Allow more there on all workers, or train a model of this size with parameter servers";
  const std::string of_a = "the cluster has ended, while worker 0 waited for the gradients of others: " + words;
  const std::string of_b =
      "the cluster has ended, while worker 1 waited for the others to begin a step: worker 0 has failed: " + words;
  a->wait(a->receive(1, got));  // it came in time
  CHECK(message_of(status::aborted, [&] { a->wait(a->receive(1, rest)); }) == of_a);
  a.reset();  // it says nothing more; b would end by its silence
  CHECK(message_of(status::aborted, [&] { static_cast<void>(b->all_take_part(true)); }) == of_b);
}

TEST_CASE("what is above the limit of the transport's frames is refused in the thread that sends it") {
  hub h;
  const server_def def{.cluster = three, .job_name = "worker", .task_index = 0};
  const loop::looped by{&h, "w0", {.frame_bytes = 4000}};
  detail::transport_ranks ranks(def, by.make({}), {}, {.retry_secs = 0.005, .close_secs = 0.2});
  const std::vector<std::byte> most(4000 - 128), more(most.size() + 1);
  CHECK_NOTHROW(ranks.send(1, most));
  const std::string said = message_of(status::resource_exhausted, [&] { ranks.send(1, more); });
  CHECK(says(said, "worker 0 sends 3873 bytes to worker 1, above the limit frame_bytes of 4000"));
}
