#include <gradus/cluster/server.hpp>
#include <gradus/cluster/shard_program.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <thread>
#include <utility>

using namespace gradus;

namespace {
const cluster_spec cluster{{"ps", {"ps0:2222"}}, {"worker", {"w0:2222", "w1:2223"}}};
}

TEST_CASE("server: who it is") {
  const server s({.cluster = cluster, .job_name = "worker", .task_index = 1});
  CHECK(s.target() == "in_process://w1:2223");
  CHECK(s.is_running());
  CHECK(s.def().protocol == "in_process");
  CHECK(s.def().cluster == cluster);
  CHECK(server({.cluster = cluster, .job_name = "ps"}).target() == "in_process://ps0:2222");
  CHECK(server(server::local_def()).target() == "in_process://localhost:0");
}

TEST_CASE("server: made, running, stopped") {
  server s({.cluster = cluster, .job_name = "ps"}, false);
  CHECK_FALSE(s.is_running());
  CHECK_THROWS_WITH_AS(s.join(), "the server \"in_process://ps0:2222\" was not started", failed_precondition);
  s.start();
  s.start();
  CHECK(s.is_running());
  s.stop();
  s.stop();
  CHECK_FALSE(s.is_running());
  s.join();
  CHECK_THROWS_WITH_AS(s.start(), "the server \"in_process://ps0:2222\" was stopped and cannot start again",
                       failed_precondition);
}

TEST_CASE("server: join holds until somebody stops it") {
  server s(server::local_def());
  std::latch waiting(1);
  bool stopped_before = true;
  std::thread ps([&] {
    stopped_before = !s.is_running();
    waiting.count_down();
    s.join();
  });
  waiting.wait();
  CHECK_FALSE(stopped_before);
  s.finish();  // there is nobody else
  s.stop();
  ps.join();
}

namespace {
// A network that is told of a stop only once its server is gone.
struct late_network final : detail::task_network {
  struct seen {
    std::latch stops{1}, goes_on{1};
    std::atomic<bool> is_gone = false, was_gone = false;
  };
  explicit late_network(seen& in) : in_(&in) {}
  ~late_network() override { in_->is_gone = true; }
  detail::message_network& messages() override { raise(status::internal, "no messages"); }
  void offer(detail::shard_program, const std::string&) override {}
  void serve(std::uint32_t) override {}
  void server_stopped() override {
    if (std::exchange(is_stopped_, true)) return;  // the destructor's
    seen& in = *in_;
    in.stops.count_down();
    in.goes_on.wait();
    in.was_gone = in.is_gone.load();
  }

private:
  seen* in_;
  bool is_stopped_ = false;
};
}  // namespace

TEST_CASE("server: whoever has joined it may destroy it, also while the call of stop is still at work") {
  late_network::seen in;
  auto s = std::make_unique<server>(server::local_def(), std::make_shared<late_network>(in), task_system());
  std::thread stops([here = s.get()] { here->stop(); });
  in.stops.wait();
  s->join();
  s.reset();
  in.goes_on.count_down();
  stops.join();
  CHECK_FALSE(in.was_gone);
  CHECK(in.is_gone);
}

TEST_CASE("server: refusals") {
  CHECK_THROWS_WITH_AS(server({.cluster = cluster, .job_name = "ps", .protocol = "grpc"}),
                       doctest::Contains("the protocol \"grpc\" takes a transport, and this server was given none"),
                       unimplemented);
  CHECK_THROWS_AS(server({.cluster = cluster}), invalid_argument);
  CHECK_THROWS_AS(server({.cluster = cluster, .job_name = "worker", .task_index = 2}), not_found);
}

TEST_CASE("P11 what a server is given beside its definition stands in its definition") {
  const session_options config{.allow_soft_placement = true, .device_filters = {"/job:ps"}};
  const server local = server::create_local_server(config);
  CHECK(local.def().default_session_config == config);
  CHECK(local.def().job_name == "local");
  CHECK((local.def().task_index == 0 && local.def().cluster.num_tasks("local") == 1));
  CHECK(local.target().rfind("in_process://localhost:", 0) == 0);
  CHECK(local.target() != server::create_local_server().target());

  const server_def written{.cluster = cluster,
                           .job_name = "ps",
                           .task_index = 0,
                           .protocol = "in_process",
                           .default_session_config = {.device_filters = {"/job:worker"}}};
  CHECK(server(written).def() == written);
  const server said(written, {.job_name = "worker", .task_index = 1, .config = config, .start = false});
  CHECK((said.def().job_name == "worker" && said.def().task_index == 1 && !said.is_running()));
  CHECK(said.def().default_session_config ==
        session_options{.allow_soft_placement = true, .device_filters = {"/job:worker", "/job:ps"}});  // merged
  CHECK(said.target() == "in_process://w1:2223");
  const server merged(written, {.config = {.isolate_session_state = true}});
  CHECK(merged.def().default_session_config.isolate_session_state);
  CHECK(merged.def().job_name == "ps");
  CHECK_THROWS_AS(server(written, {.protocol = "grpc"}), unimplemented);
}

TEST_CASE("server: one job with one task needs no name and no number, and the number need not be 0") {
  const server s({.cluster = {{"ps", {{5, "p5:1"}}}}});
  CHECK((s.def().job_name == "ps" && s.def().task_index == 5));
  CHECK(s.target() == "in_process://p5:1");
}

TEST_CASE("server: the resources that sessions of some settings get") {
  server s(server::local_def());
  const auto shared = s.resources_for(none);
  CHECK(shared.get() == &s.resources());
  CHECK(s.resources_for(session_options{.allow_soft_placement = true}) == shared);
  const auto own = s.resources_for(session_options{.isolate_session_state = true});
  CHECK(own != shared);
  CHECK(own != s.resources_for(session_options{.isolate_session_state = true}));
  detail::session_end closing, theirs, late;
  shared->enter(closing), own->enter(theirs);
  s.stop();
  CHECK(
      (closing.closing.is_cancelled() && theirs.closing.is_cancelled() && closing.closing.kind() == status::cancelled));
  s.resources_for(session_options{.isolate_session_state = true})->enter(late);
  CHECK(late.closing.reason() == "the server \"in_process://localhost:0\" was stopped");
  shared->leave(closing), own->leave(theirs);
}

TEST_CASE("server: all sessions are marked before the first wait ends, those with resources of their own too") {
  for (const bool stops : {true, false}) {
    server s(server::local_def());
    const auto shared = s.resources_for(none);
    std::vector<std::shared_ptr<session_resources>> boxes{shared, shared};
    for (int i = 0; i < 2; ++i) boxes.push_back(s.resources_for(session_options{.isolate_session_state = true}));
    std::vector<detail::session_end> ends(boxes.size());
    for (std::size_t i = 0; i < ends.size(); ++i) boxes[i]->enter(ends[i]);
    std::size_t waits_ended = 0, least = ends.size();
    std::vector<std::unique_ptr<cancellation::link>> waits;
    for (auto& end : ends)
      waits.push_back(std::make_unique<cancellation::link>(end.closing, [&] {
        ++waits_ended;
        std::size_t marked = 0;
        for (auto& other : ends) marked += other.closing.is_cancelled();
        least = std::min(least, marked);
      }));
    stops ? s.stop() : s.reset();
    CHECK(waits_ended == ends.size());
    CHECK(least == ends.size());
    for (const auto& end : ends) CHECK(end.closing.kind() == (stops ? status::cancelled : status::aborted));
    for (std::size_t i = 0; i < ends.size(); ++i) boxes[i]->leave(ends[i]);
  }
}

TEST_CASE("server: a task's place among those that train") {
  const cluster_spec all{{"chief", {"c:1"}}, {"ps", {"p0:1", "p1:1"}}, {"worker", {{2, "w2:1"}, {7, "w7:1"}}}};
  const auto task = [&](const cluster_spec& in, const char* job, int index) {
    return std::make_unique<server>(server_def{.cluster = in, .job_name = job, .task_index = index});
  };
  CHECK(task(all, "chief", 0)->is_chief());
  CHECK(task(all, "chief", 0)->worker() == 0);
  CHECK(task(all, "worker", 2)->worker() == 1);
  CHECK(task(all, "worker", 7)->worker() == 2);
  CHECK_FALSE(task(all, "worker", 2)->is_chief());
  CHECK(task(all, "worker", 7)->workers() == 3);
  CHECK(task(all, "ps", 1)->shards() == 2);
  CHECK(task(all, "ps", 1)->is_ps());
  CHECK_FALSE(task(all, "ps", 0)->is_chief());
  CHECK_THROWS_WITH_AS(task(all, "ps", 1)->worker(), doctest::Contains("the task ps 1 is no worker"),
                       failed_precondition);
  // Without a chief worker 0 is one.
  CHECK(task(cluster, "worker", 0)->is_chief());
  CHECK_FALSE(task(cluster, "worker", 1)->is_chief());
  CHECK(task(cluster, "worker", 1)->worker() == 1);
  CHECK(task(cluster, "worker", 1)->workers() == 2);
  // A process that is its own cluster.
  const server alone = server::create_local_server();
  CHECK(alone.is_chief());
  CHECK(alone.workers() == 1);
  CHECK(alone.worker() == 0);
  CHECK(alone.shards() == 0);
  CHECK_FALSE(alone.is_ps());
  CHECK(alone.network() == nullptr);
}
