#include "gradus/cluster/protocol/window.hpp"

#include "../../message.hpp"

using namespace gradus;
using namespace gradus::detail;

namespace {
using seen = window_verdict;
window_answer commit(std::uint64_t order) { return {token_verdict::committed, order}; }
}  // namespace

TEST_CASE("a contribution is new once, and its answer stays") {
  exactly_once_window w(2, 3);
  CHECK(w.look({2, 1, 1}) == seen::unknown);
  CHECK(w.look({0, 1, 1}) == seen::newer);
  CHECK(w.look({0, 0, 1}) == seen::fresh);  // nobody has joined yet
  w.admit(0, 5);
  CHECK(w.incarnation_of(0) == 5);
  CHECK(w.incarnation_of(1) == 0);
  CHECK(w.look({0, 5, 1}) == seen::fresh);
  w.begin({0, 5, 1});
  CHECK(w.look({0, 5, 1}) == seen::pending);
  w.answer({0, 5, 1}, commit(7));
  CHECK(w.look({0, 5, 1}) == seen::answered);
  CHECK(w.answer_of({0, 5, 1}) == commit(7));
  // An answer without a beginning, and another answer in its place.
  w.answer({0, 5, 2}, {token_verdict::accepted, 7});
  w.answer({0, 5, 2}, commit(8));
  CHECK(w.answer_of({0, 5, 2}) == commit(8));
  CHECK(w.highest_of(0) == 2);
}

TEST_CASE("the window's ends: what is replayed, what is forged") {
  exactly_once_window w(1, 3);
  w.admit(0, 1);
  CHECK(w.look({0, 1, 0}) == seen::ahead);  // sequences begin at 1
  CHECK(w.look({0, 1, 3}) == seen::fresh);
  CHECK(w.look({0, 1, 4}) == seen::ahead);
  w.begin({0, 1, 3});  // overtook 1 and 2
  CHECK(w.look({0, 1, 1}) == seen::fresh);
  CHECK(w.look({0, 1, 2}) == seen::fresh);
  for (std::uint64_t s : {1u, 2u, 3u}) w.answer({0, 1, s}, commit(s));
  w.answer({0, 1, 4}, commit(4));
  CHECK(w.look({0, 1, 1}) == seen::forgotten);
  CHECK(w.look({0, 1, 2}) == seen::answered);
  CHECK(w.look({0, 1, 7}) == seen::fresh);
  CHECK(w.look({0, 1, 8}) == seen::ahead);
  CHECK(w.answer_of({0, 1, 4}) == commit(4));
  // What is forgotten stays so.
  w.answer({0, 1, 1}, commit(99));
  CHECK(w.look({0, 1, 1}) == seen::forgotten);
  CHECK(w.answer_of({0, 1, 4}) == commit(4));
}

TEST_CASE("a greater incarnation replaces a worker, a smaller one does not") {
  exactly_once_window w(2, 2);
  w.admit(0, 4), w.admit(1, 4);
  w.answer({0, 4, 1}, commit(1)), w.answer({1, 4, 1}, commit(2));
  w.admit(0, 6);
  CHECK(w.look({0, 4, 1}) == seen::stale);
  CHECK(w.look({0, 6, 1}) == seen::fresh);
  CHECK(w.highest_of(0) == 0);
  CHECK(w.look({1, 4, 1}) == seen::answered);  // another worker's
  w.answer({0, 4, 1}, commit(9));              // of the past: let be
  CHECK(w.look({0, 6, 1}) == seen::fresh);
  w.answer({0, 6, 1}, commit(3));
  w.admit(0, 6), w.admit(0, 5);
  CHECK(w.incarnation_of(0) == 6);
  CHECK(w.look({0, 6, 1}) == seen::answered);
}

TEST_CASE("saved and loaded") {
  exactly_once_window w(2, 2), v(2, 2), other(2, 3);
  w.admit(1, 8);
  w.answer({1, 8, 1}, {token_verdict::dropped, 5});
  w.begin({1, 8, 2});
  std::vector<std::byte> saved;
  w.save(bytes_out(saved));
  bytes_in in(saved, "snapshot");
  v.load(in);
  in.end();
  CHECK(v.look({1, 8, 1}) == seen::answered);
  CHECK(v.answer_of({1, 8, 1}) == window_answer{token_verdict::dropped, 5});
  CHECK(v.look({1, 8, 2}) == seen::pending);
  CHECK(v.highest_of(1) == 2);
  bytes_in again(saved, "snapshot");
  CHECK(message_of(status::data_loss, [&] { other.load(again); }) ==
        "malformed snapshot: its window is of 2 workers and 2 places each; here it is 2 and 3");
  for (std::size_t n = 0; n < saved.size(); ++n) {
    bytes_in cut(std::span<const std::byte>(saved).first(n), "snapshot");
    CHECK_THROWS_AS(v.load(cut), data_loss);
    CHECK(v.highest_of(1) == 2);
  }
  CHECK(message_of(status::invalid_argument, [] { exactly_once_window<> none_at_all(0, 1); }) ==
        "a window: expected 1 worker and 1 place or more, found 0 and 1");
}
