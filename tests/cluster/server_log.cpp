// What a parameter server keeps in its folder, and that the folder is of one run.
#include <gradus/cluster/server_log.hpp>
#include <gradus/testing/faulty_files.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <span>
#include <vector>

#include "../message.hpp"

using namespace gradus;
using namespace gradus::detail;
using testing::faulty_files;

namespace {

cluster_fingerprint made_from() {
  return {.model = "m", .rule = "adam", .settings = {{"policy 0, rate", "0.1"}}, .variables = {{"w", float32, {3}}}};
}

}  // namespace

TEST_CASE("a folder belongs to one run") {
  const faulty_files fs;
  const decider_options how{.shape = {2, 3}};
  {
    server_log first(fs, "ps-0", false, made_from(), how, 0);
    CHECK(first.orders.has_value());
  }
  { const server_log again(fs, "ps-0", true, made_from(), how, 0); }
  const auto refused = [&](const cluster_fingerprint& of, const decider_options& o, std::uint32_t shard) {
    const std::string why =
        message_of(status::failed_precondition, [&] { server_log(fs, "ps-0", false, of, o, shard); });
    CHECK(says(why, "the log in \"ps-0\" is of another run: "));
    CHECK(says(why, "give another directory to go on from the last checkpoint"));
    return why;
  };
  cluster_fingerprint other = made_from();
  other.rule = "sgd";
  CHECK(says(refused(other, how, 0), "the rule of this run is \"sgd\", that of the log is \"adam\""));
  other = made_from();
  other.settings[0].second = "0.2";
  CHECK(says(refused(other, how, 0), "the setting \"policy 0, rate\" of this run is 0.2"));
  other = made_from();
  other.variables[0].dims = {4};
  CHECK(says(refused(other, how, 0), "the variable \"w\""));
  CHECK(says(refused(made_from(), {.shape = {2, 4}}, 0), "number of workers\" of this run is 4"));
  CHECK(says(refused(made_from(), {.shape = {3, 3}}, 0), "number of ps\" of this run is 3"));
  CHECK(says(refused(made_from(), how, 1), "this ps\" of this run is 1"));
  const decider_options rounds{.shape = {2, 3}, .mode = staleness::synchronous, .round = {3, 3, false}};
  CHECK(says(refused(made_from(), rounds, 0), "gradients of an update\" of this run is 3"));
  const decider_options bounded{.shape = {2, 3}, .mode = staleness::bounded, .bound = 2};
  CHECK(says(refused(made_from(), bounded, 0), "leads by\" of this run is 2"));
}

TEST_CASE("orders are logged where arrival decides, and before a snapshot that forgets them") {
  const faulty_files fs;
  const auto logs = [&](const char* folder, const decider_options& how, std::uint32_t shard) {
    return server_log(fs, folder, false, made_from(), how, shard).orders.has_value();
  };
  const decider_options how{.shape = {2, 3}};
  CHECK(logs("a", how, 0));
  CHECK(logs("b", how, 1));
  CHECK(logs("c", {.shape = {2, 3}, .mode = staleness::bounded, .bound = 2}, 1));
  const auto rounds = [](round_options r) {
    return decider_options{.shape = {2, 3}, .mode = staleness::synchronous, .round = r};
  };
  CHECK_FALSE(logs("d", rounds({3, 3, false}), 0));
  CHECK_FALSE(logs("e", {.shape = {2, 3}, .mode = staleness::bounded, .bound = 0}, 0));
  CHECK(logs("f", rounds({2, 3, false}), 0));
  CHECK_FALSE(logs("g", rounds({2, 3, false}), 1));
  CHECK(logs("h", rounds({3, 3, true}), 0));
  server_log log(fs, "ps-0", false, made_from(), how, 0);
  log.log.recover([](bytes_in&) {}, [](std::span<const std::byte>) { return true; });
  log.orders->add({1, 0, 0, 1});
  CHECK(fs.bytes("ps-0/orders").empty());
  log.snapshot([](bytes_out) {});
  CHECK(fs.bytes("ps-0/orders").size() == 32 + 16);
  // As many gradients as its rounds have.
  server_log set(fs, "i", false, made_from(), rounds({2, 3, false}), 0);
  for (const std::uint32_t w : {0U, 2U}) set.orders->add({1, 0, w, 1});
  set.orders->sync(false);
  CHECK(order_log(fs, "i/orders").last() == 1);
}

TEST_CASE("after a power failure a durable log of orders has what a snapshot has made the others forget") {
  const decider_options how{.shape = {1, 2}};
  const auto add = [](server_log& to, std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t n = first; n <= last; ++n) {
      const std::byte record[] = {static_cast<std::byte>(n)};
      to.log.append(record);
      to.orders->add({n, n - 1, 0, static_cast<std::uint32_t>(n)});
    }
    to.log.sync();
    to.orders->sync(false);  // as after each batch of messages
  };
  // Opens the folder as a parameter server does. Its state is the number of the last update.
  const auto open = [&](const faulty_files& fs, std::uint64_t& applied) {
    auto log = std::make_unique<server_log>(fs, "ps-0", true, made_from(), how, 0);
    applied = 0;
    log->log.recover([&](bytes_in& in) { applied = in.number<std::uint64_t>(); },
                     [&](std::span<const std::byte> record) {
                       applied = static_cast<std::uint64_t>(record[0]);
                       log->orders->add({applied, applied - 1, 0, static_cast<std::uint32_t>(applied)});
                       return true;
                     });
    log->orders->keep(applied);
    return log;
  };
  for (const bool comes_back : {false, true}) {  // what an earlier process has written is synced as well
    CAPTURE(comes_back);
    const faulty_files fs;
    std::uint64_t applied = 0;
    auto log = open(fs, applied);
    add(*log, 1, 60);
    if (comes_back) log.reset(), log = open(fs, applied);
    log->snapshot([](bytes_out out) { out.number(std::uint64_t{60}); });
    add(*log, 61, 130);
    int states = 0;
    fs.after_power_failure(
        [&](const faulty_files& after) {
          ++states;
          std::uint64_t there = 0;
          auto again = open(after, there);
          CHECK(there == 130);  // each was acknowledged
          again->orders->sync(false);
          again.reset();
          const order_log orders(after, "ps-0/orders");
          CHECK(orders.first() == 1);
          CHECK(orders.last() == 130);
        },
        6);
    CHECK(states > 3);
  }
}
