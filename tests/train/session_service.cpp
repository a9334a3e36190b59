// costs: 300
// Sessions that run on a server: here over a transport of calls between two ends in one process, which may lose frames.
#include <gradus/checkpoint/saver.hpp>
#include <gradus/cluster/remote_session.hpp>
#include <gradus/codec/flat.hpp>
#include <gradus/ops/conv.hpp>
#include <gradus/ops/elementwise.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/matmul.hpp>
#include <gradus/ops/random.hpp>
#include <gradus/ops/reduce.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/pass/autodiff.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/session/session_manager.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/monitored_session.hpp>
#include <gradus/train/session_service.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "../cluster/loop_transport.hpp"
#include "../message.hpp"

namespace {
using namespace gradus;
using loop::hub;
using loop::looped;

// Loses one of so many frames by chance, and says as many twice.
class lossy final : public detail::transport {
public:
  lossy(std::unique_ptr<detail::transport> of, std::uint64_t every) : of_(std::move(of)), every_(every) {}
  void tell(detail::transport_told& told) override { of_->tell(told); }
  int listen(const std::string& address) override { return of_->listen(address); }
  void connect(std::uint32_t node, const std::string& address, std::vector<std::byte> hello) override {
    of_->connect(node, address, std::move(hello));
  }
  void send(std::uint32_t node, std::span<const std::span<const std::byte>> pieces) override {
    const std::uint64_t fate = (++sent_ * 0x9E3779B97F4A7C15u) >> 40;
    if (fate % every_ == 0) return;
    of_->send(node, pieces);
    if (fate % every_ == 1) of_->send(node, pieces);
  }
  std::string problem(std::uint32_t node) const override { return of_->problem(node); }
  detail::transport_counts counts() const override { return of_->counts(); }
  void close(double secs) override { of_->close(secs); }

private:
  std::unique_ptr<detail::transport> of_;
  std::uint64_t every_;
  std::atomic<std::uint64_t> sent_ = 0;
};
struct losing {
  static constexpr std::string_view protocol = "loop";
  looped by;
  std::uint64_t every;
  std::unique_ptr<detail::transport> make(const task_system& run) const {
    return std::make_unique<lossy>(by.make(run), every);
  }
};

const server_def one_task{.cluster = {{"worker", {"w0:1"}}}, .job_name = "worker", .task_index = 0};
constexpr const char* target = "loop://w0:1";
remote_session_options quick() {
  remote_session_options o;
  o.connect_secs = 5, o.silence_secs = 5, o.retry_secs = 0.01;
  return o;
}

struct counting {
  graph g;
  value v = g.variable("v", {}, {.init = zeros}), add = assign_add(v, g.constant(1.0));
};

}  // namespace

TEST_CASE("P3 a matrix product through the server's target, in two sessions") {
  hub h;
  const server here(looped{&h, "server"}, one_task);
  const session_service there{here};
  graph g;
  const value a = g.placeholder("a", {batch, 2}), y = matmul(a, g.constant({1, 2, 3, 4}, {2, 2}));
  remote_session s(target, g, looped{&h, "one"}, quick()), t(target, g, looped{&h, "two"}, quick());
  const std::vector<float> x{1, 1, 2, 0};
  session local{g};
  for (auto* one : {&s, &t}) {
    const auto r = one->run(y, {{a, x}});
    CHECK(r.dims == extents{2, 2});
    CHECK(std::equal(r.as<float>().begin(), r.as<float>().end(), local.run(y, {{a, x}}).as<float>().begin()));
  }
  CHECK(there.sessions() == 2);
  s.close();
  CHECK(there.sessions() == 1);
  CHECK_THROWS_WITH_AS(s.run(y, {{a, x}}), "run: the session is closed (the session was closed); make another one",
                       failed_precondition);
}

TEST_CASE("a model with layers, dropout, a convolution and metrics has the bits of a session of this process") {
  hub h;
  const server here(looped{&h, "server"}, one_task);
  const session_service there{here};
  graph g;
  const value x = g.placeholder("x", {batch, 6, 6, 2});
  const value c = relu(conv2d(x, {.filters = 4, .kernel_size = 3, .name = "conv"}));
  const value hdn = dropout(dense(flatten(c), {.units = 5, .name = "h"}), 0.5f);
  const value loss = reduce_mean(hdn * hdn);
  const value kernel = g.by_name("h/kernel");
  const auto grads = gradients(g, {&loss, 1}, {&kernel, 1});
  session local{g};
  remote_session remote(target, g, looped{&h, "one"}, quick());
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

TEST_CASE("every call is made once, whatever frames are lost or said twice, by several threads at once") {
  for (const std::uint64_t every : {2u, 3u, 5u}) {
    CAPTURE(every);
    hub h;
    const server here(losing{{&h, "server"}, every}, one_task);
    const session_service there{here};
    counting k;
    remote_session s(target, k.g, losing{{&h, "one"}, every}, quick());
    s.initialize();
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 20; ++i) s.run(k.add);
      });
    for (auto& t : threads) t.join();
    CHECK(s.run(k.v).as<float>()[0] == 60);
  }
}

TEST_CASE("P9 variables are shared by name, isolated ones are not; P10 reset takes them away") {
  hub h;
  const server here(looped{&h, "server"}, one_task);
  const session_service there{here};
  counting a, b, c;
  remote_session s(target, a.g, looped{&h, "one"}, quick()), t(target, b.g, looped{&h, "two"}, quick());
  auto isolated = quick();
  isolated.config = session_options{.isolate_session_state = true};
  remote_session u(target, c.g, looped{&h, "three"}, isolated);
  s.initialize();
  s.run(a.add);
  CHECK(t.run(b.v).as<float>()[0] == 1);
  CHECK(here.resources().is_variable_initialized("v"));
  CHECK(u.report_uninitialized_variables() == std::vector<std::string>{"v"});
  CHECK_THROWS_AS(u.run(c.v), failed_precondition);
  reset_server(target, looped{&h, "four"}, {"other"}, quick());
  CHECK_THROWS_AS(s.run(a.v), aborted);
  counting d;
  remote_session again(target, d.g, looped{&h, "five"}, quick());
  CHECK(again.run(d.v).as<float>()[0] == 1);
  reset_server(target, looped{&h, "six"}, {}, quick());
  remote_session last(target, d.g, looped{&h, "seven"}, quick());
  CHECK_FALSE(last.is_variable_initialized("v"));
}

TEST_CASE("P5 closing cancels a run that waits in a queue; P8 a timeout; a stop; and the queue is the server's") {
  hub h;
  const server here(looped{&h, "server"}, one_task);
  const session_service there{here};
  graph g;
  graph_queue q(g, make_queue_spec(queue_kind::fifo, 8, {float32}, {.shapes = {{}}, .name = "q"}));
  const value x = g.placeholder("x", {});
  const value put = q.enqueue({x}), got = q.dequeue()[0], size = q.size();
  remote_session s(target, g, looped{&h, "one"}, quick());
  CHECK_THROWS_AS(s.run(got, {}, {.timeout_secs = 0.05}), deadline_exceeded);
  const std::vector<float> two{2};
  s.run(put, {{x, two}});
  CHECK(s.run(size).as<std::int32_t>()[0] == 1);
  CHECK(s.run(got).as<float>()[0] == 2);
  CHECK_THROWS_AS(q.in(s), unimplemented);
  cancellation stop;
  std::string said;
  std::thread stopped([&] { said = message_of(status::aborted, [&] { s.run(got, {}, {.stop = &stop}); }); });
  stop.cancel("enough", status::aborted);
  stopped.join();
  CHECK(said == "enough");
  // A run that has not begun when the session is closed is refused in another way.
  for (said.clear(); !says(said, "Closed"); ) {
    remote_session waiting(target, g, looped{&h, "waits"}, quick());
    std::atomic<bool> was_sent = false;
    h.saw = [&](std::span<const std::byte> frame) {
      const detail::message_head head = detail::keep_frame(frame).head;
      if (head.kind == detail::message_kind::call && head.about == static_cast<std::uint64_t>(detail::session_op::run))
        was_sent = true;
    };
    std::thread waits([&] {
      try {
        waiting.run(got);
      } catch (const cancelled& e) {
        said = text("Closed: ", e.what());
      } catch (const failed_precondition&) {
      }
    });
    while (!was_sent) std::this_thread::yield();
    waiting.close();
    waits.join();
    h.saw = nullptr;
  }
  CHECK(says(said, "the session was closed"));
}

TEST_CASE("errors of the server come back as they are, and ops that it lacks are named when they are needed") {
  hub h;
  const server here(looped{&h, "server"}, one_task);
  const session_service there{here};
  graph g;
  const value x = g.placeholder("x", {batch, 3});
  const value w = g.variable("w", {3, 1}), y = matmul(x, w), loss = reduce_mean(y * y);
  optimizer opt(gradient_descent{0.1});
  const value train = opt.minimize(loss);
  remote_session s(target, g, looped{&h, "one"}, quick());
  const std::vector<float> data{1, 2, 3, 4, 5, 6};
  CHECK(says(message_of(status::failed_precondition, [&] { s.run(y, {{x, data}}); }), "\"w\""));
  s.initialize(1);
  CHECK(s.run(y, {{x, data}}).dims == extents{2, 1});
  CHECK(message_of(status::invalid_argument, [&] { s.run(y); }) == "placeholder \"x\" is needed and was not fed: give {\"x\", data}");
  CHECK(says(message_of(status::not_found, [&] { s.run("nothing"); }), "the graph has no node named \"nothing\""));
  const std::string said = message_of(status::unimplemented, [&] { s.run(train, {{x, data}}); });
  CHECK(says(said, "the server \"loop://w0:1\" has no kernel for "));
  CHECK(says(said, "UpdateVariable"));
  CHECK(says(said, "connected{server}"));
  graph other;
  other.variable("w", {4, 1});
  CHECK(says(message_of(status::invalid_argument, [&] { remote_session(target, other, looped{&h, "two"}, quick()); }),
             "variable \"w\" is float32 [4, 1] in this graph and float32 [3, 1]"));
  CHECK(says(message_of(status::invalid_argument, [&] { remote_session("grpc://w0:1", g, looped{&h, "three"}, quick()); }),
             "expected loop://host:port"));
  auto soon = quick();
  soon.connect_secs = 0.05;
  CHECK(says(message_of(status::deadline_exceeded, [&] { remote_session("loop://nobody:1", g, looped{&h, "four"}, soon); }),
             "is it started, and does it run a session_service?"));
  const server alone = server::create_local_server();
  CHECK(says(message_of(status::failed_precondition, [&] { session_service{alone}; }), "has no transport"));
}

TEST_CASE("a server that is started again does not know the session: aborted, upon which a monitored session begins anew") {
  hub h;
  counting k;
  const testing::temp_dir place;
  auto here = std::make_unique<server>(looped{&h, "server"}, one_task);
  auto there = std::make_unique<session_service<>>(*here);
  remote_session s(target, k.g, looped{&h, "one"}, quick());
  s.initialize();
  s.run(k.add);
  there.reset(), here.reset();
  here = std::make_unique<server>(looped{&h, "server"}, one_task);
  there = std::make_unique<session_service<>>(*here);
  CHECK(says(message_of(status::aborted, [&] { s.run(k.add); }), "does not know the session"));
  CHECK_THROWS_AS(s.variable("v"), aborted);
}

TEST_CASE("a saver saves and restores variables of a server; what is written here is sent with the next call") {
  hub h;
  const server here(looped{&h, "server"}, one_task);
  const session_service there{here};
  const testing::temp_dir place;
  graph g;
  const value v = g.variable("v", {2}, {.init = zeros}), w = g.variable("w", {3}, {.init = ones});
  const value add = assign_add(v, g.constant({1, 2}, {2}));
  remote_session s(target, g, looped{&h, "one"}, quick());
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

TEST_CASE("a session manager and a monitored session work on a server by the connect policy remote_sessions") {
  hub h;
  const server here(looped{&h, "server"}, one_task);
  const session_service there{here};
  counting k;
  const remote_sessions reach{looped{&h, "one"}, quick()};
  session_manager manager({.ready_op = report_uninitialized_variables(k.g)}, {});
  const auto made = manager.prepare_session(reach.sessions(target, sessions_of(k.g)), {.init_op = global_variables_initializer(k.g)});
  made->run(k.add);
  CHECK(made->run(k.v).as<float>()[0] == 1);
  CHECK(here.resources().is_variable_initialized("v"));
}

TEST_CASE("what is above session_limits is refused by its name, and the others go on") {
  hub h;
  const server here(looped{&h, "server"}, one_task);
  const session_service there{here, session_limits{.sessions = 2, .calls = 2, .bytes = 100'000}};
  graph g;
  graph_queue q(g, make_queue_spec(queue_kind::fifo, 8, {float32}, {.shapes = {{}}, .name = "q"}));
  const value x = g.placeholder("x", {batch}), y = x + x;
  const value got = q.dequeue()[0], close = q.close();
  remote_session s(target, g, looped{&h, "one"}, quick()), t(target, g, looped{&h, "two"}, quick());
  CHECK(says(message_of(status::resource_exhausted, [&] { remote_session(target, g, looped{&h, "three"}, quick()); }),
             "the limit `sessions`"));
  const std::vector<float> large(30'000);
  CHECK(says(message_of(status::resource_exhausted, [&] { s.run(y, {{x, large}}); }), "the limit `bytes`"));
  CHECK(s.run(y, {{x, std::vector<float>{1}}}).as<float>()[0] == 2);
  std::atomic<int> begun = 0, ended = 0;
  h.saw = [&](std::span<const std::byte> frame) {
    const detail::message_head head = detail::keep_frame(frame).head;
    if (head.kind == detail::message_kind::call && head.about == static_cast<std::uint64_t>(detail::session_op::run))
      ++begun;
  };
  std::vector<std::thread> wait;
  for (int i = 0; i < 2; ++i)
    wait.emplace_back([&] {
      CHECK_THROWS_AS(s.run(got), out_of_range);
      ++ended;
    });
  while (begun != 2) std::this_thread::yield();
  CHECK(says(message_of(status::resource_exhausted, [&] { s.run(y, {{x, std::vector<float>{1}}}); }),
             "the limit `calls`"));
  t.run(close);
  for (auto& w : wait) w.join();
  CHECK(ended == 2);
}

TEST_CASE("every op that a header declares can be run by a server, but for those that the page names") {
  const std::regex declared("\\{+\"([A-Z][A-Za-z0-9]*)\", *-?[0-9]");
  std::string lacking;
  std::size_t known = 0;
  for (const auto& e : std::filesystem::directory_iterator(GRADUS_SOURCE_DIR "/include/gradus/ops")) {
    std::ifstream in(e.path());
    const std::string words{std::istreambuf_iterator<char>(in), {}};
    for (std::sregex_iterator i(words.begin(), words.end(), declared), end; i != end; ++i) {
      const std::string name = (*i)[1];
      const bool has = detail::card_of_sessions(name) != nullptr || default_device::registry<>::named(name) != nullptr;
      known += has;
      if (!has) lacking += name + " ";
    }
  }
  CHECK(known > 100);
  CHECK(lacking == "");
}
