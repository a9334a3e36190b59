#include <gradus/session/queue/fifo_queue.hpp>

#include <doctest/doctest.h>

#include <gradus/testing/hand_tasks.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "queue_calls.hpp"

using namespace gradus;

namespace {
fifo_queue floats(std::int64_t capacity) { return {capacity, {float32}, {.shapes = {{}}, .name = "q"}}; }
using list = std::vector<float>;
}  // namespace

TEST_CASE("F1 size: 0 when empty, 1 after an enqueue, 0 after the dequeue") {
  fifo_queue q(10, {float32});
  CHECK(q.size() == 0);
  q.enqueue(10.0F);
  CHECK(q.size() == 1);
  CHECK(q.dequeue().value<float>(0) == 10.0F);
  CHECK(q.size() == 0);
}

TEST_CASE("F2 ten producers and one consumer, one filler and ten consumers: every element once") {
  fifo_queue q = floats(10);
  list wanted, got;
  for (int i = 0; i < 10; ++i) wanted.push_back(10.0F * static_cast<float>(i));
  SUBCASE("ten producers, room for all") {
    {
      std::vector<std::unique_ptr<queue_call>> producers;
      for (float x : wanted) producers.push_back(std::make_unique<queue_call>([q, x]() mutable { q.enqueue(x); }));
    }
    for (int i = 0; i < 10; ++i) got.push_back(q.dequeue<float>());
  }
  SUBCASE("ten consumers") {
    std::vector<std::unique_ptr<queue_call>> consumers;
    std::mutex mutex;
    for (int i = 0; i < 10; ++i)
      consumers.push_back(std::make_unique<queue_call>([&, q]() mutable {
        const auto x = q.dequeue<float>();
        const std::lock_guard lock(mutex);
        got.push_back(x);
      }));
    for (float x : wanted) q.enqueue(x);
    for (auto& c : consumers) CHECK_FALSE(c->join());
  }
  std::sort(got.begin(), got.end());
  CHECK(got == wanted);
  CHECK(q.size() == 0);
}

TEST_CASE("F3 a dequeue that waits is served by a later enqueue, in order") {
  fifo_queue q = floats(10);
  list got;
  queue_call consumer([&] {
    for (int i = 0; i < 3; ++i) got.push_back(q.dequeue<float>());
  });
  until_pending(q, 0, 1);
  for (float x : {10.0F, 20.0F, 30.0F}) q.enqueue(x);
  CHECK_FALSE(consumer.join());
  CHECK(got == list{10, 20, 30});
}

TEST_CASE("F3 an element that serves a waiting dequeue is not in the queue any more, when its enqueue returns") {
  fifo_queue q = floats(10);
  queue_call consumer([&] { q.dequeue<float>(); });
  until_pending(q, 0, 1);
  q.enqueue(1.0F);
  CHECK(q.size() == 0);
}

TEST_CASE("F4 several components keep their pairing") {
  fifo_queue q(10, {int32, float32}, {.shapes = {{}, {2}}});
  const std::vector<std::pair<std::int32_t, std::array<float, 2>>> elements{
      {5, {10, 11}}, {6, {20, 21}}, {7, {30, 31}}};
  for (const auto& [number, pair] : elements) {
    const const_tensor_view list[] = {{int32, {}, reinterpret_cast<const std::byte*>(&number)},
                                      {std::span<const float>(pair), {2}}};
    q.enqueue(list);
  }
  for (const auto& [number, pair] : elements) {
    const datum e = q.dequeue();
    CHECK(e.value<std::int32_t>(0) == number);
    CHECK(values_of<float>(e[1]) == list(pair.begin(), pair.end()));
  }
}

TEST_CASE("F5 enqueue_many of four, twice: eight dequeues in order") {
  fifo_queue q = floats(10);
  enqueue_rows<float>(q, {10, 20, 30, 40});
  enqueue_rows<float>(q, {10, 20, 30, 40});
  CHECK(q.size() == 8);
  for (int i = 0; i < 8; ++i) CHECK(q.dequeue<float>() == 10.0F * static_cast<float>(i % 4 + 1));
}

TEST_CASE("F6 enqueue_many of no elements changes nothing") {
  fifo_queue q = floats(10);
  enqueue_rows<float>(q, {});
  CHECK(q.size() == 0);
  q.close();
  enqueue_rows<float>(q, {});  // also on a closed queue, as in TensorFlow
  CHECK(q.size() == 0);
}

TEST_CASE("F7 dequeue_many(0) is an empty array, also on an empty queue; without shapes it is an error") {
  fifo_queue q(10, {float32, int32}, {.shapes = {{2, 3}, {}}});
  for (const bool closed : {false, true}) {
    if (closed) q.close();
    const datum none = q.dequeue_many(0), none_again = q.dequeue_up_to(0);
    CHECK(none[0].dims == extents{0, 2, 3});
    CHECK(none[1].dims == extents{0});
    CHECK(none == none_again);
  }
  fifo_queue shapeless(10, {float32});
  CHECK_THROWS_WITH_AS(shapeless.dequeue_many(0), doctest::Contains("specified shapes"), invalid_argument);
  CHECK_THROWS_WITH_AS(shapeless.dequeue_up_to(0), doctest::Contains("specified shapes"), invalid_argument);
  CHECK_THROWS_WITH_AS(q.dequeue_many(-1), doctest::Contains("got -1"), invalid_argument);
}

TEST_CASE("F8 dequeue_many(4) twice gives 0 to 3 and 4 to 7, then single dequeues go on") {
  fifo_queue q = floats(10);
  enqueue_rows<float>(q, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(dequeue_rows<float>(q, 4) == list{0, 1, 2, 3});
  CHECK(dequeue_rows<float>(q, 4) == list{4, 5, 6, 7});
  CHECK(q.dequeue<float>() == 8);
  CHECK(q.dequeue<float>() == 9);
}

TEST_CASE("F11 close, then enqueue: cancelled; what is left can be taken, then out_of_range") {
  fifo_queue q = floats(10);
  for (float x : {10.0F, 20.0F, 30.0F}) q.enqueue(x);
  q.close();
  CHECK_THROWS_WITH_AS(q.enqueue(1.0F), "queue \"q\" is closed; nothing can be enqueued any more", cancelled);
  CHECK_THROWS_AS(enqueue_rows<float>(q, {1}), cancelled);
  for (float x : {10.0F, 20.0F, 30.0F}) CHECK(q.dequeue<float>() == x);
  CHECK_THROWS_WITH_AS(q.dequeue<float>(), "queue \"q\" is closed and has insufficient elements (requested 1, has 0)",
                       out_of_range);
  CHECK_THROWS_AS(q.close(), cancelled);  // TensorFlow's later ages
  CHECK_NOTHROW(q.close(true));           // whoever cleans up need not ask
}

TEST_CASE("F11 close serves a dequeue that waits on an empty queue: out_of_range") {
  fifo_queue q = floats(10);
  queue_call consumer([&] { q.dequeue<float>(); });
  until_pending(q, 0, 1);
  q.close();
  CHECK(consumer.join() == status::out_of_range);
}

TEST_CASE("F12 dequeue_many of more than a closed queue has: out_of_range, and they stay; dequeue_up_to gives them") {
  fifo_queue q = floats(10);
  enqueue_rows<float>(q, {10, 20});
  q.close();
  CHECK_THROWS_WITH_AS(q.dequeue_many(4), "queue \"q\" is closed and has insufficient elements (requested 4, has 2)",
                       out_of_range);
  CHECK(q.size() == 2);
  const datum left = q.dequeue_up_to(4);
  CHECK(left[0].dims == extents{2});
  CHECK(values_of<float>(left[0]) == list{10, 20});
  CHECK_THROWS_AS(q.dequeue_up_to(4), out_of_range);
}

TEST_CASE("F12 dequeue_up_to of an open queue waits for all; the close gives what there is") {
  fifo_queue q = floats(10);
  enqueue_rows<float>(q, {10, 20, 30, 40});
  list first, last;
  queue_call consumer([&] {
    first = values_of<float>(q.dequeue_up_to(3)[0]);
    last = values_of<float>(q.dequeue_up_to(3)[0]);
  });
  until_pending(q, 0, 1);
  q.close();
  CHECK_FALSE(consumer.join());
  CHECK(first == list{10, 20, 30});
  CHECK(last == list{40});
}

TEST_CASE("F13 close with a pending enqueue: its element is still delivered, later enqueues fail") {
  fifo_queue q = floats(4);
  enqueue_rows<float>(q, {10, 20, 30, 40});
  queue_call producer([&] { q.enqueue(50.0F); });
  until_pending(q, 1, 0);
  queue_call closer([&] { q.close(); });
  until_pending(q, 2, 0);
  queue_call later([&] { q.enqueue(60.0F); });
  until_pending(q, 3, 0);
  CHECK_FALSE(q.is_closed());
  CHECK(q.dequeue<float>() == 10);
  CHECK_FALSE(producer.join());
  CHECK_FALSE(closer.join());
  CHECK(later.join() == status::cancelled);
  CHECK(q.is_closed());
  for (float x : {20.0F, 30.0F, 40.0F, 50.0F}) CHECK(q.dequeue<float>() == x);
  CHECK_THROWS_AS(q.dequeue<float>(), out_of_range);
}

TEST_CASE("F14 close with cancel_pending_enqueues: the pending one fails with cancelled") {
  fifo_queue q = floats(4);
  enqueue_rows<float>(q, {10, 20, 30, 40});
  queue_call producer([&] { enqueue_rows<float>(q, {50, 60, 70}); });
  until_pending(q, 1, 0);
  queue_call closer([&] { q.close(); });
  until_pending(q, 2, 0);
  CHECK(q.dequeue<float>() == 10);
  q.close(true);
  CHECK(producer.join() == status::cancelled);
  CHECK(producer.what() ==
        "queue \"q\" was closed and its pending enqueues cancelled; 1 of the 3 elements of this one are in");
  CHECK(closer.join() == status::cancelled);
  CHECK(dequeue_rows<float>(q, 4) == list{20, 30, 40, 50});
  CHECK_THROWS_AS(q.dequeue<float>(), out_of_range);
}

TEST_CASE("F15 a dequeue_many that waits when the queue closes short: out_of_range, its elements return") {
  fifo_queue q = floats(4);
  enqueue_rows<float>(q, {10, 20, 30, 40});
  list first;
  queue_call consumer([&] {
    first = dequeue_rows<float>(q, 3);
    dequeue_rows<float>(q, 3);
  });
  until_pending(q, 0, 1);
  CHECK(q.size() == 0);  // the call has gathered one
  q.close();
  CHECK(consumer.join() == status::out_of_range);
  CHECK(consumer.what() == "queue \"q\" is closed and has insufficient elements (requested 3, has 1)");
  CHECK(first == list{10, 20, 30});
  CHECK(q.size() == 1);
  CHECK(q.dequeue<float>() == 40);
}

TEST_CASE("F15 what returns serves the dequeue behind, in order") {
  fifo_queue q = floats(4);
  list got;
  queue_call many([&] { q.dequeue_many(4); });
  until_pending(q, 0, 1);
  queue_call behind([&] { got = dequeue_rows<float>(q, 2); });
  until_pending(q, 0, 2);
  enqueue_rows<float>(q, {1, 2, 3});
  q.close();
  CHECK(many.join() == status::out_of_range);
  CHECK_FALSE(behind.join());
  CHECK(got == list{1, 2});
  CHECK(q.dequeue<float>() == 3);
}

TEST_CASE("F16 enqueue_many of more than there is room for gets on as consumers take") {
  fifo_queue q = floats(4);
  q.enqueue(0.0F);
  queue_call producer([&] { enqueue_rows<float>(q, {1, 2, 3, 4, 5, 6, 7, 8, 9}); });
  until_pending(q, 1, 0);
  CHECK(q.size() == 4);
  for (int i = 0; i < 10; ++i) {
    CHECK(q.dequeue<float>() == static_cast<float>(i));
    if (i < 5) {
      until_pending(q, 1, 0);
      CHECK(q.size() == 4);
    }
  }
  CHECK_FALSE(producer.join());
}

TEST_CASE("F16 a dequeue_many of more than the capacity gathers") {
  fifo_queue q = floats(2);
  list got;
  queue_call consumer([&] { got = dequeue_rows<float>(q, 7); });
  enqueue_rows<float>(q, {1, 2, 3, 4, 5, 6, 7});
  CHECK_FALSE(consumer.join());
  CHECK(got == list{1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("F17 a cancellation ends what waits, on both sides, and the queue is as before") {
  fifo_queue full = floats(2), empty = floats(2);
  cancellation closing;
  enqueue_rows<float>(full, {1, 2});
  queue_call enqueue([&] { enqueue_rows<float>(full, {3}, {.cancel = &closing}); });
  until_pending(full, 1, 0);  // a close before it would not wait
  queue_call close([&] { full.close(false, {.cancel = &closing}); });
  queue_call dequeue([&] { empty.dequeue<float>({.cancel = &closing}); });
  queue_call many([&] { empty.dequeue_many(3, {.cancel = &closing}); });
  until_pending(full, 2, 0);
  until_pending(empty, 0, 2);
  closing.cancel("Session::Close");
  for (queue_call* c : {&enqueue, &close, &dequeue, &many}) {
    CHECK(c->join() == status::cancelled);
    CHECK(c->what() == "queue \"q\": a waiting call was cancelled: Session::Close");
  }
  CHECK_FALSE(full.is_closed());
  CHECK(dequeue_rows<float>(full, 2) == list{1, 2});
  CHECK(full.pending() == pending_calls{});
  CHECK_THROWS_AS(enqueue_rows<float>(full, {1}, {.cancel = &closing}), cancelled);  // later calls too, with room
  CHECK(full.size() == 0);
}

TEST_CASE(
    "F17 a close behind an enqueue of the same cancellation does not close, whichever of them hears of it first") {
  fifo_queue q = floats(2);
  cancellation closing;
  blocking_options wait;
  SUBCASE("cancel") { wait.cancel = &closing; }
  SUBCASE("stop") { wait.stop = &closing; }
  enqueue_rows<float>(q, {1, 2});
  queue_call enqueue([&] { enqueue_rows<float>(q, {3, 4, 5, 6, 7}, wait); });
  until_pending(q, 1, 0);
  queue_call close([&] { q.close(false, wait); });
  until_pending(q, 2, 0);
  CHECK(dequeue_rows<float>(q, 2) == list{1, 2});  // the enqueue copies its next rows and waits anew, behind the close
  until_pending(q, 2, 0);
  closing.cancel();
  CHECK(enqueue.join() == status::cancelled);
  CHECK(close.join() == status::cancelled);
  CHECK_FALSE(q.is_closed());
  CHECK(dequeue_rows<float>(q, 2) == list{3, 4});
}

TEST_CASE("F17 a call that is cancelled ends by that, also if the queue is closed before it hears of it") {
  fifo_queue q = floats(1);
  cancellation stop;
  q.enqueue(1.0F);
  queue_call enqueue([&] { enqueue_rows<float>(q, {2}, {.stop = &stop}); });
  until_pending(q, 1, 0);
  queue_call close([&] { q.close(false, {.stop = &stop}); });
  until_pending(q, 2, 0);
  queue_call dropped([&] { q.enqueue(3.0F); });
  until_pending(q, 3, 0);
  const cancellation::link closes_first(stop, [&] { q.close(true); });
  stop.cancel("a stop was requested", status::out_of_range);
  CHECK(enqueue.join() == status::out_of_range);
  CHECK(close.join() == status::out_of_range);
  CHECK(dropped.join() == status::cancelled);
  CHECK(q.is_closed());
}

TEST_CASE("F17 what a cancelled dequeue_many had gathered serves who waits behind it") {
  fifo_queue q = floats(4);
  cancellation closing;
  list got;
  queue_call many([&] { q.dequeue_many(4, {.cancel = &closing}); });
  until_pending(q, 0, 1);
  queue_call behind([&] { got = dequeue_rows<float>(q, 3); });
  until_pending(q, 0, 2);
  enqueue_rows<float>(q, {1, 2, 3});
  closing.cancel();
  CHECK(many.join() == status::cancelled);
  CHECK_FALSE(behind.join());
  CHECK(got == list{1, 2, 3});
}

TEST_CASE("F19 is_closed reads the state") {
  fifo_queue q = floats(10);
  CHECK_FALSE(q.is_closed());
  q.close();
  CHECK(q.is_closed());
}

TEST_CASE("F25 two threads dequeue_many of one queue: no element is lost or doubled") {
  fifo_queue q = floats(50);
  list got[2];
  {
    queue_call filler([&] {
      list all(1000);
      std::iota(all.begin(), all.end(), 0.0F);
      enqueue_rows(q, all);
      q.close();
    });
    const auto drain = [&](list& into, std::int64_t n) {
      for (;;) {
        const datum part = q.dequeue_up_to(n);
        const auto some = values_of<float>(part[0]);
        CHECK(std::is_sorted(some.begin(), some.end()));
        into.insert(into.end(), some.begin(), some.end());
      }
    };
    queue_call a([&] { drain(got[0], 7); }), b([&] { drain(got[1], 60); });
  }
  list all = got[0];
  all.insert(all.end(), got[1].begin(), got[1].end());
  std::sort(all.begin(), all.end());
  list wanted(1000);
  std::iota(wanted.begin(), wanted.end(), 0.0F);
  CHECK(all == wanted);
}

TEST_CASE("F26 a dequeue with a timeout: deadline_exceeded, and the queue is as before") {
  const testing::hand_tasks hand;
  fifo_queue q(4, {float32}, {.shapes = {{}}, .name = "q"}, hand.tasks());
  enqueue_rows<float>(q, {1, 2, 3});
  std::string what;
  const auto late = [&](auto call) {
    return hand.tasks().start("a test", "do without", [&what, call] {
      try {
        call();
      } catch (const deadline_exceeded& e) {
        what = e.what();
      }
    });
  };
  SUBCASE("a dequeue_many, which gives back what it had gathered") {
    const task_handle many = late([&] { q.dequeue_many(4, {.timeout_secs = 5}); });
    hand.advance(4.9);
    CHECK(q.pending() == pending_calls{0, 1});
    CHECK(q.size() == 0);
    hand.advance(0.1);
    CHECK(what ==
          "queue \"q\": no elements came within 5 seconds; let the other side run, or give a longer timeout_secs");
    CHECK(q.size() == 3);
    q.enqueue(4.0F);
  }
  SUBCASE("behind another call, which goes on") {
    list first;
    const task_handle goes_on = hand.tasks().start("a test", "do without", [&] { first = dequeue_rows<float>(q, 4); });
    hand.settle();
    const task_handle behind = late([&] { q.dequeue<float>({.timeout_secs = 5}); });
    hand.advance(5);
    CHECK_FALSE(what.empty());
    CHECK(q.pending() == pending_calls{0, 1});
    q.enqueue(4.0F);
    hand.settle();
    CHECK(first == list{1, 2, 3, 4});
    enqueue_rows<float>(q, {1, 2, 3, 4});
  }
  SUBCASE("an enqueue_many: what is in stays in") {
    const task_handle producer = late([&] { enqueue_rows<float>(q, {4, 5}, {.timeout_secs = 300}); });
    hand.advance(299);
    CHECK(q.pending() == pending_calls{1, 0});
    hand.advance(1);
    CHECK(what ==
          "queue \"q\": there was no room within 300 seconds; let the other side run, or give a longer timeout_secs");
  }
  SUBCASE("time goes on while rows go in") {
    const task_handle producer = late([&] { enqueue_rows<float>(q, {4, 5, 6, 7, 8, 9, 10}, {.timeout_secs = 5}); });
    hand.advance(3);
    for (float x : {1.0F, 2.0F, 3.0F}) CHECK(q.dequeue<float>() == x);
    hand.advance(1.9);
    CHECK(what.empty());
    hand.advance(0.1);
    CHECK_FALSE(what.empty());
    CHECK(dequeue_rows<float>(q, 4) == list{4, 5, 6, 7});
    enqueue_rows<float>(q, {1, 2, 3, 4});
  }
  CHECK(q.pending() == pending_calls{});
  CHECK_THROWS_AS(q.enqueue_many(q.dequeue_many(0), {.timeout_secs = std::nan("")}), invalid_argument);
  CHECK(dequeue_rows<float>(q, 4, {.timeout_secs = 0}) == list{1, 2, 3, 4});
  CHECK_THROWS_AS(q.dequeue<float>({.timeout_secs = 0}), deadline_exceeded);
}

TEST_CASE("F26 a close that is late is withdrawn") {
  fifo_queue q = floats(1);
  q.enqueue(1.0F);
  queue_call producer([&] { q.enqueue(2.0F); });
  until_pending(q, 1, 0);
  CHECK_THROWS_AS(q.close(false, {.timeout_secs = 0}), deadline_exceeded);
  CHECK_FALSE(q.is_closed());
  CHECK(q.dequeue<float>() == 1);
  CHECK(q.dequeue<float>() == 2);
}

TEST_CASE("fifo_queue: below 0 there is no bound") {
  fifo_queue q = floats(-1);
  for (int i = 0; i < 5000; ++i) q.enqueue(static_cast<float>(i));
  CHECK(q.size() == 5000);
  for (int i = 0; i < 5000; ++i) CHECK(q.dequeue<float>() == static_cast<float>(i));
}
