// costs: 120
// Runs whose bits depend on who came first, repeated from their logs: parameters, slots, averages, powers and the step
// have the bits of the logged run.
#include <gradus/cluster/replay.hpp>

#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/local_cluster.hpp>
#include <gradus/cluster/order_log.hpp>
#include <gradus/cluster/simulated.hpp>
#include <gradus/codecs.hpp>
#include <gradus/gradus.hpp>
#include <gradus/store/file.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "../message.hpp"
#include "../train/run_files.hpp"

using namespace gradus;
using detail::order_entry;
using testing::temp_dir;

namespace {

// Gradients that come as rows, numbers that are drawn by the step, and moving averages that the chief keeps.
constexpr auto letters = [](graph& g) {
  const auto ids = g.placeholder("ids", {batch, 3}, int32), y = g.placeholder("y", {batch}, int32);
  const auto x = flatten(embedding(ids, {.input_dim = 50, .output_dim = 8, .name = "letter"}));
  const auto h = dropout(batch_norm(dense(x, {.units = 12, .name = "hidden"})), 0.25);
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(dense(h, {.units = 5, .name = "logits"}), y))};
};
struct points {
  std::vector<std::int32_t> x, y;
  points() {
    for (int i = 0; i < 96; ++i) {
      for (int k = 0; k < 3; ++k) x.push_back((i * 37 + k * 11) % 50);
      y.push_back(i * 7 % 5);
    }
  }
  auto batches() const { return from_spans("ids", x, extents{3}, "y", y, extents{}).repeat().batch(8); }
};

// What a run is.
struct plan {
  std::string logs, model;
  distribution_strategy when = {};
  std::int64_t steps = 40;
  double rate = 0.01;
};
run_config config_of(const plan& p) {
  run_config c{.model_dir = p.model, .tf_random_seed = 7, .save_summary_steps = 0, .save_checkpoints_steps = 15};
  c.train_distribute = p.when, c.checkpoint_save_graph_def = false;
  return c;
}
using program_type = std::function<void(server&)>;
program_type learning(const plan& p) {
  return [p](server& here) {
    if (here.is_ps()) return here.join();
    const points data;
    auto t = make_trainer<letters>(connected{here}, recovery::log{.directory = p.logs}, adam{.rate = p.rate},
                                   clip_by_global_norm{0.5}, exponential_moving_average{.decay = 0.9}, config_of(p));
    t.train(data.batches().shard(here.workers(), here.worker()), {.max_steps = p.steps});
  };
}

run_files::content trained(const plan& p) {
  auto found = run_files::newest_checkpoint(posix{}, p.model);
  std::erase_if(found.records, [](const auto& r) { return r.first.starts_with("input "); });
  return found;
}
std::string differs(const plan& a, const plan& b) { return run_files::difference(trained(a), trained(b)); }

// In virtual time a run is the same each time that its seed is, with what networks do; who comes first is drawn.
constexpr int ps = 2, workers = 3;
void run_drawn(std::uint64_t seed, const plan& p, int crashes = 0) {
  simulated_faults faults{.lost = 0.03, .doubled = 0.03, .late = 0.05, .crashes = crashes};
  faults.slowness = 3, faults.within = 0.5;
  simulated{.seed = seed, .ps = ps, .workers = workers, .faults = faults}.run(learning(p));
}
replay_report repeat(const plan& p, std::int64_t until = 0) {
  return replay{.logs = p.logs, .until = static_cast<std::uint64_t>(until)}.run(learning(p));
}
// The same run with another folder for its files.
plan with(plan p, const std::string& model) { return p.model = model, p; }

std::string orders_of(const plan& p, int shard) { return join_path(p.logs, text("ps-", shard, "/orders")); }
std::vector<order_entry> entries_of(const plan& p, int shard) {
  const detail::order_log log(posix{}, orders_of(p, shard));
  std::vector<order_entry> all;
  for (std::uint64_t order = log.first(); order <= log.last(); ++order)
    for (std::uint32_t i = 0; i < log.of().of_update; ++i) all.push_back(log.at(order, i));
  return all;
}
void write_entries(const plan& p, int shard, const std::vector<order_entry>& all) {
  const std::string path = orders_of(p, shard);
  REQUIRE(posix{}.remove(path) == 0);
  detail::order_file to(posix{}, path, {static_cast<std::uint32_t>(shard), 1});
  for (const order_entry& e : all) to.add(e);
  to.sync(false);
}
}  // namespace

TEST_CASE("an asynchronous run of threads is repeated bit for bit, up to the chief's last checkpoint") {
  const temp_dir dir;
  const plan first{dir / "logs", dir / "first"}, again = with(first, dir / "again");
  local_cluster{.ps = ps, .workers = workers}.run(learning(first));
  const auto end = static_cast<std::uint64_t>(trained(first).step);
  const replay_report r = repeat(again, trained(first).step);
  CHECK((r.begin == 0 && r.end == end && r.logged >= r.end));
  CHECK(differs(first, again) == "");
}

// What the parameter servers hold at the end, also of updates behind the chief's last checkpoint.
TEST_CASE("all that was logged is what the logged parameter servers come back with") {
  // In most runs a worker that is not the chief makes the last update: the first seed of such a run is taken.
  const temp_dir all;
  plan first, again;
  replay_report r;
  for (std::uint64_t seed = 1; seed <= 8 && r.end <= static_cast<std::uint64_t>(first.steps); ++seed) {
    const std::string dir = all / std::to_string(seed);
    first = {join_path(dir, "logs"), join_path(dir, "first")}, again = with(first, join_path(dir, "again"));
    run_drawn(seed, first);
    first.steps = trained(first).step;
    r = repeat(again);
  }
  REQUIRE(r.end > static_cast<std::uint64_t>(first.steps));
  plan back = with(first, all / "back");
  back.steps = static_cast<std::int64_t>(r.end);
  local_cluster{.ps = ps, .workers = workers}.run(learning(back));
  CHECK(trained(back).step == back.steps);
  auto a = trained(again), b = trained(back);
  for (auto* one : {&a, &b})
    std::erase_if(one->records, [](const auto& r) {  // what is the chief's own
      return r.first.find("moving_") != std::string::npos || r.first.starts_with("random_step");
    });
  CHECK(run_files::difference(a, b) == "");
}

TEST_CASE("runs with stale gradients, lost messages and a bound are repeated bit for bit") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    const temp_dir dir;
    plan first{dir / "logs", dir / "first"};
    if (seed % 2 == 0) first.when = ssp{2};
    run_drawn(seed, first);
    const auto all = entries_of(first, 1);
    CHECK(std::ranges::count_if(all, [](const order_entry& e) { return e.read + 1 < e.order; }) > 10);
    const plan again = with(first, dir / "again");
    repeat(again, trained(first).step);
    CHECK(differs(first, again) == "");
  }
}

TEST_CASE("rounds with backups are repeated bit for bit from the logged sets") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    const temp_dir dir;
    plan first{dir / "logs", dir / "first", sync_replicas{.replicas_to_aggregate = 2}};
    if (seed == 4) first.when = sync_replicas{.replicas_to_aggregate = 1};
    if (seed == 5) first.when = sync_replicas{.replicas_to_aggregate = 2, .wasted_first_round = true};
    if (seed == 6)
      local_cluster{.ps = ps, .workers = workers}.run(learning(first));
    else
      run_drawn(seed, first);
    const auto all = entries_of(first, 0);
    CHECK(std::ranges::all_of(all, [](const order_entry& e) { return e.read + 1 == e.order; }));
    std::uint32_t made[workers] = {};
    for (const order_entry& e : all) made[e.worker] = e.number;
    if (seed != 6) CHECK(made[0] + made[1] + made[2] > all.size());  // some came too late
    const plan again = with(first, dir / "again");
    repeat(again);
    // What the chief keeps for itself is also of its gradients that came too late.
    auto a = trained(first), b = trained(again);
    for (auto* one : {&a, &b})
      std::erase_if(one->records, [](const auto& r) {
        return r.first.find("moving_") != std::string::npos || r.first.starts_with("random_step");
      });
    CHECK(a.records.size() > 10);
    CHECK(run_files::difference(a, b) == "");
  }
}

TEST_CASE("a run that began with a checkpoint is repeated from that") {
  const temp_dir dir;
  const plan before{dir / "before's logs", dir / "first", {}, 20};
  run_drawn(3, before);
  const std::int64_t begin = trained(before).step;
  plan first = before;
  first.logs = dir / "logs", first.steps = 50;
  const plan again = with(first, dir / "again");
  for (const std::string& model : {again.model}) {
    make_directories(posix{}, model);
    std::vector<std::string> names;
    REQUIRE(posix{}.list(first.model, names) == 0);
    for (const std::string& name : names) {
      std::vector<std::byte> bytes;
      if (!try_read(posix{}, join_path(first.model, name), UINT64_MAX, bytes))
        publish(posix{}, join_path(model, name), {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
  }
  run_drawn(4, first);
  const replay_report r = repeat(again, trained(first).step);
  CHECK(r.begin == static_cast<std::uint64_t>(begin));
  CHECK(differs(first, again) == "");
  const std::string why = message_of(status::failed_precondition, [&] { repeat(with(first, dir / "empty")); });
  CHECK(says(why, text("it begins behind update 0, and the log behind update ", begin)));
  CHECK(says(why, text("give it a model_dir with the checkpoint of step ", begin)));
}

TEST_CASE("a log whose end was torn is repeated as far as it goes") {
  const temp_dir dir;
  const plan first{dir / "logs", dir / "first"}, again = with(first, dir / "again");
  run_drawn(5, first);
  const std::int64_t end = trained(first).step;
  for (int k = 0; k < ps; ++k) {
    std::vector<std::byte> bytes = read_file(posix{}, orders_of(first, k));
    // One of them has one more, and half of another one.
    bytes.resize(32 + 16 * static_cast<std::size_t>(end - 1 + k) + 9);
    publish(posix{}, orders_of(first, k), {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  const replay_report r = repeat(again);
  CHECK((r.end == static_cast<std::uint64_t>(end - 1) && r.logged == r.end));
  CHECK(trained(again).step == end - 1);
  CHECK(message_of(status::invalid_argument, [&] { repeat(again, end); }) == text("replay: expected .until of 0 to ",
                                                                                  end - 1, ", which the logs in \"",
                                                                                  first.logs, "\" have, found ", end));
}

// The test of the tests: another order, or other values, are other bits.
TEST_CASE("a log that says something else is another run") {
  const temp_dir dir;
  const plan first{dir / "logs", dir / "first"};
  run_drawn(1, first);
  const std::int64_t end = trained(first).step;
  const std::vector<order_entry> logged[ps] = {entries_of(first, 0), entries_of(first, 1)};
  SUBCASE("two updates in the other order") {
    const auto n = static_cast<std::size_t>(end);
    std::size_t at = 3;
    // Whose workers have read nothing between, and go on from values behind both.
    const auto fits = [&](std::size_t i) {
      for (const auto& all : logged) {
        if (all[i].worker == all[i + 1].worker || all[i + 1].read > i) return false;
        for (const std::uint32_t w : {all[i].worker, all[i + 1].worker})
          for (std::size_t k = i + 2; k < all.size(); ++k)
            if (all[k].worker == w) {
              if (all[k].read < i + 2) return false;
              break;
            }
      }
      return true;
    };
    while (at + 1 < n && !fits(at)) ++at;
    REQUIRE(at + 1 < n);
    for (int k = 0; k < ps; ++k) {
      auto all = logged[k];
      std::swap(all[at], all[at + 1]);
      std::swap(all[at].order, all[at + 1].order);
      write_entries(first, k, all);
    }
    const plan again = with(first, dir / "again");
    repeat(again, end);
    CHECK(trained(again).step == end);
    CHECK(differs(first, again) != "");
  }
  SUBCASE("values of one update later") {
    auto all = logged[1];
    std::size_t at = 5;
    while (all[at].read + 1 >= all[at].order) ++at;
    ++all[at].read;
    write_entries(first, 1, all);
    const plan again = with(first, dir / "again");
    repeat(again, end);
    CHECK(differs(first, again) != "");
  }
  SUBCASE("and as it was") {
    for (int k = 0; k < ps; ++k) write_entries(first, k, logged[k]);
    const plan again = with(first, dir / "again");
    repeat(again, end);
    CHECK(differs(first, again) == "");
  }
}

TEST_CASE("what is no repetition is refused by name") {
  const temp_dir dir;
  const plan first{dir / "logs", dir / "first"};
  run_drawn(2, first);
  const auto refused = [&](const plan& p, status kind = status::failed_precondition) {
    return message_of(kind, [&] { repeat(p); });
  };
  plan other = with(first, dir / "other");
  other.rate = 0.02;
  std::string why = refused(other);
  CHECK(says(why, text("the log in \"", first.logs, "\" is of another run: the setting \"policy ")));
  CHECK(says(why, "of this program is 0.02"));
  CHECK(says(why, "that of the log is 0.01"));
  other = with(first, dir / "short");
  other.steps = 20;
  why = refused(other);
  CHECK(says(why, "ends behind its gradient"));
  CHECK(says(why, "give it as many steps, or replay up to update"));
  why = refused(first);  // its model_dir has the last checkpoint
  CHECK(says(why, text("it begins behind update ", trained(first).step, ", and the log behind update 0")));
  CHECK(says(why, "give it a model_dir without a checkpoint"));
  CHECK(says(message_of(status::invalid_argument, [] { replay{}.run([](server&) {}); }), "expected the folder"));
  other.logs = dir / "elsewhere";
  CHECK(says(refused(other, status::not_found), "give the folder that recovery::log had"));
}

TEST_CASE("a worker whose process was started again is repeated, a chief is not") {
  bool was_worker = false, was_chief = false;
  for (std::uint64_t seed = 1; !was_worker || !was_chief; ++seed) {
    REQUIRE(seed < 60);
    CAPTURE(seed);
    const temp_dir dir;
    const plan first{dir / "logs", dir / "first"}, again = with(first, dir / "again");
    run_drawn(seed, first, 1);
    std::uint32_t made[workers] = {}, anew = 0, of = 0;
    std::uint64_t order = 0;
    for (const order_entry& e : entries_of(first, 0)) {
      if (e.number <= made[e.worker] && anew++ == 0) order = e.order, of = e.worker;
      made[e.worker] = e.number;
    }
    if (anew != 1 || (of == 0 ? was_chief : was_worker)) continue;
    (of == 0 ? was_chief : was_worker) = true;
    if (of != 0) {
      CHECK(order < static_cast<std::uint64_t>(trained(first).step));
      repeat(again, trained(first).step);
      CHECK(differs(first, again) == "");
      continue;
    }
    const std::string why = message_of(status::failed_precondition, [&] { repeat(again); });
    CHECK(says(why, "worker 0 computes its gradient "));
    CHECK(says(why, text("where the log has its gradient 1, in update ", order)));
    CHECK(says(why, "the chief's process had begun anew, which is not repeated"));
    CHECK(says(why, text("replay up to update ", order - 1, " by .until")));
    const plan up_to = with(first, dir / "up to");
    CHECK(repeat(up_to, static_cast<std::int64_t>(order - 1)).end == order - 1);
    CHECK(trained(up_to).step == static_cast<std::int64_t>(order - 1));
  }
}

TEST_CASE("orders are printed") {
  const temp_dir dir;
  const plan first{dir / "logs", dir / "first", {}, 10};
  run_drawn(2, first);
  std::vector<std::string> lines;
  print_orders(first.logs, [&](const std::string& line) { lines.push_back(line); });
  const auto a = entries_of(first, 0), b = entries_of(first, 1);
  REQUIRE(lines.size() == std::min(a.size(), b.size()));
  CHECK(lines[4] == text("update 5: gradient ", a[4].number, " of worker ", a[4].worker, ", from values of update ",
                         a[4].read, ", ", b[4].read));
}
