// costs: 300
#include <gradus/session/queue/core.hpp>

#include <doctest/doctest.h>

#include <gradus/base/random.hpp>
#include <gradus/session/queue/any_queue.hpp>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>

#include "queue_calls.hpp"
#include "queue_model.hpp"

using namespace gradus;

namespace {

bool is_long() { return std::getenv("GRADUS_LONG") != nullptr; }

constexpr queue_kind all_kinds[] = {queue_kind::fifo, queue_kind::random_shuffle, queue_kind::padding_fifo,
                                    queue_kind::priority};

// Elements of three components: a key, an id, and a row that follows from the id, so that parts of two elements never
// come together unseen. A padding queue has rows of one to three values.
any_queue make(queue_kind kind, std::int64_t capacity, std::int64_t min_after_dequeue) {
  queue_options options{.shapes = {{}, {}, {kind == queue_kind::padding_fifo ? any_extent : 3}}, .name = "drawn"};
  queue_spec spec = make_queue_spec(kind, capacity, {int64, int64, float32}, options);
  if (kind == queue_kind::random_shuffle) spec.min_after_dequeue = min_after_dequeue, spec.seed = 5;
  return any_queue(spec);
}

struct rows {
  std::vector<std::int64_t> keys, ids;
  std::vector<float> values;
  std::int64_t width = 3;

  void add(std::int64_t key, std::int64_t id) {
    keys.push_back(key), ids.push_back(id);
    for (std::int64_t i = 0; i < width; ++i) values.push_back(static_cast<float>(id % 1000 + i));
  }
  void put(any_queue& q, bool one, const blocking_options& wait) const {
    const auto n = static_cast<std::int64_t>(ids.size());
    const extents lead = one ? extents{} : extents{n}, wide = one ? extents{width} : extents{n, width};
    const const_tensor_view list[] = {{std::span(keys), lead}, {std::span(ids), lead}, {std::span(values), wide}};
    if (one)
      q.enqueue(list, wait);
    else
      q.enqueue_many(list, wait);
  }
};

// What came out, with a check that nothing was mixed.
std::vector<queue_model::element> taken_from(const datum& d) {
  std::vector<queue_model::element> out;
  const bool one = d[0].dims.rank == 0;
  const auto keys = d.values<std::int64_t>(0), ids = d.values<std::int64_t>(1);
  const auto values = d.values<float>(2);
  const auto width = static_cast<std::size_t>(d[2].dims[one ? 0 : 1]);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    out.push_back({keys[i], ids[i]});
    bool ended = false, fits = width >= 1 && width <= 3;
    for (std::size_t j = 0; j < width; ++j) {
      const float x = values[i * width + j], wanted = static_cast<float>(ids[i] % 1000 + static_cast<std::int64_t>(j));
      ended = ended || (x == 0 && wanted != 0 && j > 0);
      fits = fits && x == (ended ? 0 : wanted);
    }
    CHECK(fits);
  }
  return out;
}

// Threads that bring and threads that take, with calls drawn; some are late or cancelled on the way.
void run_threads(queue_kind kind, int threads, std::int64_t capacity, std::int64_t operations, std::uint64_t seed) {
  CAPTURE(name_of(kind));
  CAPTURE(threads);
  CAPTURE(capacity);
  any_queue q = make(kind, capacity, capacity / 3);
  const int producers = std::max(1, threads / 2), consumers = std::max(1, threads - producers);
  std::vector<std::vector<std::int64_t>> got(static_cast<std::size_t>(consumers));
  std::atomic<std::int64_t> brought{0};
  std::atomic<int> bad{0};
  const std::int64_t each = std::max<std::int64_t>(1, operations / (producers + consumers));

  const auto produce = [&](int p) {
    random_stream draw{seed + static_cast<std::uint64_t>(p)};
    std::int64_t next = 0;
    for (std::int64_t op = 0; op < each; ++op) {
      const bool one = draw.below(2) == 0;
      rows r;
      r.width = kind == queue_kind::padding_fifo ? 1 + draw.below(3) : 3;
      const std::int64_t n = one ? 1 : draw.below(static_cast<std::uint32_t>(2 * std::min<std::int64_t>(capacity, 20)));
      for (std::int64_t i = 0; i < n; ++i) r.add(draw.below(10), p * std::int64_t{10000000} + next++);
      r.put(q, one, {});
      brought += n;
    }
  };
  // Until it is told that there is nothing more.
  const auto consume = [&](int c) {
    random_stream draw{seed + 1000 + static_cast<std::uint64_t>(c)};
    for (;;) {
      datum d;
      const std::int64_t n = 1 + draw.below(static_cast<std::uint32_t>(std::min<std::int64_t>(capacity, 12)));
      const double secs = draw.below(4) == 0 ? draw.uniform() * 1e-5 : task_condition::forever;
      try {
        switch (draw.below(3)) {
        case 0: q.dequeue(d, {.timeout_secs = secs}); break;
        case 1: q.dequeue_many(n, d, {.timeout_secs = secs}); break;
        default: q.dequeue_up_to(n, d, {.timeout_secs = secs}); break;
        }
      } catch (const deadline_exceeded&) {
        continue;
      } catch (const out_of_range&) {
        if (q.size() == 0 && q.is_closed()) return;
        continue;
      }
      for (const auto& e : taken_from(d)) got[static_cast<std::size_t>(c)].push_back(e.id);
    }
  };
  std::vector<std::unique_ptr<queue_call>> bring, take;
  for (int c = 0; c < consumers; ++c) take.push_back(std::make_unique<queue_call>([&, c] { consume(c); }));
  for (int p = 0; p < producers; ++p) bring.push_back(std::make_unique<queue_call>([&, p] { produce(p); }));
  for (auto& p : bring) CHECK_FALSE(p->join());
  q.close();
  for (auto& c : take) CHECK_FALSE(c->join());

  std::vector<std::int64_t> all;
  for (const auto& ids : got) {
    all.insert(all.end(), ids.begin(), ids.end());
    if (kind == queue_kind::random_shuffle || kind == queue_kind::priority) continue;
    std::map<std::int64_t, std::int64_t> last;  // of each producer: one consumer sees its elements in order
    for (std::int64_t id : ids) {
      const auto [at, is_new] = last.emplace(id / 10000000, id);
      if (!is_new && at->second >= id) ++bad;
      at->second = id;
    }
  }
  std::sort(all.begin(), all.end());
  CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
  CHECK(static_cast<std::int64_t>(all.size()) == brought);
  CHECK(bad == 0);
  CHECK(q.size() == 0);
  CHECK(q.pending() == pending_calls{});
}

// One program: calls begin one after another, each when all before it have ended or wait.
void run_program(queue_kind kind, std::uint64_t seed) {
  random_stream draw{seed};
  const std::int64_t capacity = draw.below(8) == 0 ? -1 : 1 + static_cast<std::int64_t>(draw.below(5));
  const std::int64_t least =
      capacity > 0 && kind == queue_kind::random_shuffle ? draw.below(static_cast<std::uint32_t>(capacity)) : 0;
  CAPTURE(name_of(kind));
  CAPTURE(seed);
  CAPTURE(capacity);
  any_queue q = make(kind, capacity, least);
  queue_model model(kind, capacity, least);
  struct running {
    cancellation stop;
    datum out;
    std::unique_ptr<queue_call> call;
  };
  std::map<int, running> calls;
  std::int64_t next_id = 0;
  std::string program;

  const int length = 6 + static_cast<int>(draw.below(20));
  for (int number = 0; number < length; ++number) {
    running& r = calls[number];
    const auto begin = [&](auto f) {
      r.call = std::make_unique<queue_call>(std::move(f), model.ended.contains(number));
    };
    const std::uint32_t what = draw.below(20);
    if (what < 7) {  // enqueue, enqueue_many
      const bool one = what < 3;
      const std::int64_t most = capacity < 0 ? 6 : kind == queue_kind::priority ? capacity : 2 * capacity + 1;
      const std::int64_t n = one ? 1 : draw.below(static_cast<std::uint32_t>(most + 1));
      rows in;
      queue_model::attempt a{number, queue_model::ops::enqueue, 0, {}};
      for (std::int64_t i = 0; i < n; ++i) {
        a.elements.push_back({draw.below(3), next_id});
        in.add(a.elements.back().key, next_id++);
      }
      program += text(" enqueue(", n, ")");
      if (n == 0)
        model.ended[number] = {queue_model::ends::done, {}};
      else
        model.start(a);
      begin([&q, &r, one, in] { in.put(q, one, {.cancel = &r.stop}); });
    } else if (what < 15) {  // dequeue, dequeue_many, dequeue_up_to
      const bool one = what < 9, up_to = what >= 12;
      const std::int64_t most = kind == queue_kind::priority && capacity > 0 ? capacity : 7;
      const std::int64_t n = one ? 1 : 1 + draw.below(static_cast<std::uint32_t>(most));
      program += text(up_to ? " up_to(" : " dequeue(", n, ")");
      model.start({number,
                   up_to ? queue_model::ops::dequeue_up_to : queue_model::ops::dequeue,
                   static_cast<std::size_t>(n),
                   {}});
      begin([&q, &r, one, up_to, n] {
        if (one)
          q.dequeue(r.out, {.cancel = &r.stop});
        else if (up_to)
          q.dequeue_up_to(n, r.out, {.cancel = &r.stop});
        else
          q.dequeue_many(n, r.out, {.cancel = &r.stop});
      });
    } else if (what == 15) {
      program += " close";
      model.start({number, queue_model::ops::close, 0, {}});
      begin([&q, &r] { q.close(false, {.cancel = &r.stop}); });
    } else if (what == 16) {
      program += " close(cancel)";
      q.close(true);
      model.close_and_cancel();
      calls.erase(number);
    } else {  // one that waits is cancelled
      calls.erase(number);
      const auto waiting = model.waiting();
      if (!waiting.empty()) {
        const int which = waiting[draw.below(static_cast<std::uint32_t>(waiting.size()))];
        program += text(" cancel(", which, ")");
        calls[which].stop.cancel();
        model.cancel(which);
      }
    }
    CAPTURE(program);
    for (const auto& [n, result] : model.ended) {
      const auto at = calls.find(n);
      if (at == calls.end()) continue;
      const auto kind_of_end = at->second.call->join();
      const auto wanted = result.end == queue_model::ends::done           ? std::optional<status>()
                          : result.end == queue_model::ends::out_of_range ? status::out_of_range
                                                                          : status::cancelled;
      CAPTURE(n);
      REQUIRE(kind_of_end == wanted);
      if (result.end == queue_model::ends::done && at->second.out.size() != 0) {
        const auto got = taken_from(at->second.out);
        REQUIRE(got.size() == result.taken.size());
        for (std::size_t i = 0; i < got.size() && kind != queue_kind::random_shuffle; ++i)
          CHECK(got[i].id == result.taken[i].id);
      }
      calls.erase(at);
    }
    model.ended.clear();
    until_pending(q, model.bringers(), model.takers());
    REQUIRE(q.size() == model.size());
    REQUIRE(q.is_closed() == model.is_closed());
  }
  for (auto& [n, r] : calls) r.stop.cancel();
}

}  // namespace

TEST_CASE("core: threads and drawn calls; every element comes out once, of one piece") {
  const std::int64_t all = is_long() ? 10000000 : 100000;
  const std::pair<int, std::int64_t> settings[] = {{2, 1}, {2, 100}, {3, 4}, {5, 1000}, {8, 16}, {64, 40}};
  std::uint64_t seed = 17;
  for (queue_kind kind : all_kinds)
    for (const auto& [threads, capacity] : settings) run_threads(kind, threads, capacity, all / 24, seed += 100000);
}

TEST_CASE("core: drawn programs end as the model says, call by call") {
  const std::uint64_t programs = is_long() ? 10000 : 1000;
  for (std::uint64_t p = 0; p < programs; ++p) run_program(all_kinds[p % 4], p);
}
