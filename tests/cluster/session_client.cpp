// costs: 200
// Calls to a server: made once whatever is lost, ended when the server is gone.
#include <gradus/cluster/session_client.hpp>
#include <gradus/train/session_service.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../message.hpp"
#include "session_ends.hpp"

using namespace session_ends;

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

TEST_CASE(
    "a server that is started again does not know the session: aborted, upon which a monitored session begins anew") {
  hub h;
  counting k;
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
