#include <gradus/base/cancellation.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace gradus;

TEST_CASE("cancellation: calls every link that is there, once, and later ones at once") {
  cancellation c;
  int first = 0, second = 0, third = 0, gone = 0;
  const cancellation::link a(c, [&] { ++first; });
  auto b = std::make_unique<cancellation::link>(c, [&] { ++gone; });
  const cancellation::link d(c, [&] { ++second; });
  b.reset();
  CHECK_FALSE(c.is_cancelled());
  CHECK(c.reason().empty());
  c.cancel("the session is closed");
  c.cancel("again");
  CHECK(c.is_cancelled());
  CHECK(c.reason() == "the session is closed");
  const cancellation::link e(c, [&] { ++third; });
  CHECK(first == 1);
  CHECK(second == 1);
  CHECK(third == 1);
  CHECK(gone == 0);
}

TEST_CASE("cancellation: links end in any order") {
  for (int which = 0; which < 3; ++which) {
    cancellation c;
    int calls = 0;
    std::unique_ptr<cancellation::link> links[3];
    for (auto& l : links) l = std::make_unique<cancellation::link>(c, [&] { ++calls; });
    links[which].reset();
    links[(which + 1) % 3].reset();
    const cancellation::link more(c, [&] { ++calls; });
    c.cancel();
    CHECK(calls == 2);
  }
}

TEST_CASE("cancellation: a link that has ended is not called any more, also from another thread") {
  for (int round = 0; round < 200; ++round) {
    cancellation c;
    std::atomic<bool> ended{false}, late{false};
    std::thread other([&] { c.cancel(); });
    {
      const cancellation::link l(c, [&] { late = ended.load(); });
    }
    ended = true;
    other.join();
    CHECK_FALSE(late);
  }
}

TEST_CASE("cancellation: its kind and its reason are those of the first call; cancelled unless it says otherwise") {
  cancellation c;
  CHECK(c.kind() == status::cancelled);
  c.cancel("the server was reset", status::aborted);
  c.cancel("the session is closed");
  CHECK(c.kind() == status::aborted);
  CHECK(c.reason() == "the server was reset");
  cancellation plain;
  plain.cancel();
  CHECK((plain.kind() == status::cancelled && plain.reason() == "the call was cancelled"));
}

TEST_CASE("cancellation: what is marked is cancelled; its links are called later, also one that is made between") {
  cancellation c;
  int first = 0, between = 0, after = 0;
  const cancellation::link a(c, [&] { ++first; });
  c.mark("the server was reset", status::aborted);
  CHECK(c.is_cancelled());
  c.mark("again");
  CHECK((c.kind() == status::aborted && c.reason() == "the server was reset"));
  const cancellation::link b(c, [&] { ++between; });
  CHECK((first == 0 && between == 0));
  c.call();
  c.call();
  const cancellation::link d(c, [&] { ++after; });
  CHECK((first == 1 && between == 1 && after == 1));
}

TEST_CASE("cancellation: a mark locks nothing that is held while links are called") {
  cancellation c;
  std::mutex mine;  // as a coordinator's, which marks under it
  std::string why;
  std::latch called(1), marked(1);
  const cancellation::link l(c, [&] {
    called.count_down();
    marked.wait();
    const std::lock_guard lock(mine);
    why = c.reason();
  });
  std::thread other([&] { c.cancel("enough"); });
  called.wait();
  {
    const std::lock_guard lock(mine);
    c.mark("too late");
    marked.count_down();
  }
  other.join();
  CHECK(why == "enough");
}

TEST_CASE("either_cancellation: all that follow from one cancellation are cancelled before a link is called") {
  for (const bool before : {false, true}) {
    cancellation stop, other;
    if (before) stop.mark("enough", status::aborted);
    detail::either_cancellation one(stop, other), two(other, stop), three(*one.get(), *two.get());
    std::vector<cancellation*> all{one.get(), two.get(), three.get()};
    int cancelled = 0;
    std::vector<std::unique_ptr<cancellation::link>> links;
    for (cancellation* const c : all)
      links.push_back(std::make_unique<cancellation::link>(*c, [&] {
        for (const cancellation* const each : all) cancelled += each->is_cancelled() ? 1 : 0;
      }));
    CHECK(cancelled == 0);
    stop.cancel("enough", status::aborted);
    CHECK(cancelled == 9);
    CHECK((three.get()->kind() == status::aborted && three.get()->reason() == "enough"));
  }
}

TEST_CASE("either_cancellation: the first of two, also one that has come; afterwards neither knows it") {
  for (const bool before : {false, true})
    for (int which = 0; which < 2; ++which) {
      cancellation two[2];
      if (before) two[which].cancel("enough", status::aborted);
      int calls = 0;
      {
        detail::either_cancellation both(two[0], two[1]);
        const cancellation::link l(*both.get(), [&] { ++calls; });
        if (!before) {
          CHECK_FALSE(both.get()->is_cancelled());
          two[which].cancel("enough", status::aborted);
        }
        CHECK(both.get()->reason() == "enough");
        CHECK(both.get()->kind() == status::aborted);
        two[1 - which].cancel("too late");
        CHECK(both.get()->reason() == "enough");
      }
      CHECK(calls == 1);
      CHECK(two[which].reason() == "enough");
      CHECK(two[1 - which].reason() == "too late");
    }
}
