// Ranks that are threads: messages in order, rounds of who takes part, and ends.
#include <gradus/cluster/rank_network.hpp>

#include <doctest/doctest.h>

#include <array>
#include <stdexcept>
#include <thread>
#include <vector>

#include "../message.hpp"

namespace {
using namespace gradus;
using detail::rank_network;
using detail::thread_ranks;

template <class F>
void on_each(thread_ranks& ranks, int size, F f) {
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) threads.emplace_back([&ranks, &f, r] { f(ranks.end_of(r)); });
  for (auto& t : threads) t.join();
}
template <class T>
std::span<const std::byte> sent(const T& x) {
  return std::as_bytes(std::span(&x, 1));
}
template <class T>
std::span<std::byte> room(T& x) {
  return std::as_writable_bytes(std::span(&x, 1));
}

}  // namespace

TEST_CASE("what a rank sends comes in its order, whatever is waited for first") {
  thread_ranks ranks(3, "worker", {});
  on_each(ranks, 3, [](rank_network& here) {
    CHECK(here.size() == 3);
    CHECK_FALSE(here.has_sum());
    for (int round = 0; round < 200; ++round) {
      std::array<int, 3> first{}, second{};
      const std::array<int, 2> own{10 * round + here.rank(), 10 * round + here.rank() + 5};
      std::vector<std::size_t> receives, sends;
      for (int k = 0; k < 3; ++k) {
        if (k == here.rank()) continue;
        receives.push_back(here.receive(k, room(first[static_cast<std::size_t>(k)])));
        receives.push_back(here.receive(k, room(second[static_cast<std::size_t>(k)])));
        sends.push_back(here.send(k, sent(own[0])));
        sends.push_back(here.send(k, sent(own[1])));
      }
      for (std::size_t i = receives.size(); i-- > 0;) here.wait(receives[i]);
      for (const std::size_t s : sends) here.wait(s);
      for (int k = 0; k < 3; ++k) {
        if (k == here.rank()) continue;
        CHECK(first[static_cast<std::size_t>(k)] == 10 * round + k);
        CHECK(second[static_cast<std::size_t>(k)] == 10 * round + k + 5);
      }
    }
  });
}

TEST_CASE("all take part, or all know that one does not; who has ended never does again") {
  thread_ranks ranks(3, "worker", {});
  on_each(ranks, 3, [&](rank_network& here) {
    for (int round = 0; round < 50; ++round) CHECK(here.all_take_part(true));
    CHECK_FALSE(here.all_take_part(here.rank() != 1));
    CHECK(here.all_take_part(true));
    if (here.rank() == 2) return ranks.depart(2);
    CHECK_FALSE(here.all_take_part(true));
    CHECK_FALSE(here.all_take_part(true));
  });
}

TEST_CASE("an error ends the waits of others, which name who failed; so does a program that has ended") {
  for (const bool departs : {false, true}) {
    CAPTURE(departs);
    thread_ranks ranks(2, "worker", {});
    std::string said;
    on_each(ranks, 2, [&](rank_network& here) {
      if (here.rank() == 0)
        return departs ? ranks.depart(0) : here.fail(std::make_exception_ptr(std::runtime_error("it broke")));
      int number = 7;
      said = message_of(status::aborted, [&] { here.wait(here.receive(0, room(number))); });
      CHECK(number == 7);
    });
    CHECK(says(said, departs ? "worker 0 has ended its program in the middle of a step, while worker 1 waited for it"
                             : "the cluster has ended, while worker 1 waited for the gradients of others: worker 0 has "
                               "failed: it broke"));
  }
}

TEST_CASE("what a failed rank had sent, and nobody had taken, is withdrawn: its receiver is told") {
  thread_ranks ranks(2, "worker", {});
  rank_network &a = ranks.end_of(0), &b = ranks.end_of(1);
  const int number = 1;
  int got = 7;
  a.send(1, sent(number));
  a.fail(std::make_exception_ptr(std::runtime_error("it broke")));
  CHECK(
      says(message_of(status::aborted, [&] { b.wait(b.receive(0, room(got))); }),
           "the cluster has ended, while worker 1 waited for the gradients of others: worker 0 has failed: it broke"));
  CHECK(got == 7);
}

TEST_CASE("a message of another length is an error of its receiver") {
  thread_ranks ranks(2, "worker", {});
  std::string said;
  on_each(ranks, 2, [&](rank_network& here) {
    std::array<int, 2> numbers{};
    if (here.rank() == 0) {
      const std::size_t one = here.send(1, sent(numbers[0]));
      CHECK(says(message_of(status::aborted, [&] { here.wait(one); }), "worker 1 has failed"));
      return;
    }
    said = message_of(status::internal, [&] { here.wait(here.receive(0, room(numbers))); });
    here.fail(std::make_exception_ptr(std::runtime_error(said)));
  });
  CHECK(says(said, "worker 0 sent 4 bytes to worker 1, which expected 8"));
}
