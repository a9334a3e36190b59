// What the logs of a run say: read from the folders of all parameter servers, held against each other and against the
// program.
#include <gradus/cluster/replay_plan.hpp>

#include <gradus/cluster/server_log.hpp>
#include <gradus/testing/faulty_files.hpp>

#include <doctest/doctest.h>

#include <vector>

#include "../message.hpp"

using namespace gradus;
using namespace gradus::detail;
using testing::faulty_files;

namespace {
using entries = std::vector<order_entry>;
const decider_options asynchronous_run{.shape = {2, 3}};

cluster_fingerprint made_from() {
  return {.model = "m", .rule = "adam", .settings = {{"policy 0, rate", "0.1"}}, .variables = {{"w", float32, {3}}}};
}
void log_of(const faulty_files& fs, std::uint32_t shard, const entries& all,
            const decider_options& how = asynchronous_run) {
  server_log log(fs, text("logs/ps-", shard), false, made_from(), how, shard);
  for (const order_entry& e : all) log.orders->add(e);
  if (log.orders) log.orders->sync(false);
}
std::string why_not(const faulty_files& fs, status kind) {
  return message_of(kind, [&] { replay_plan(fs, "logs"); });
}
// Of updates 5 to 8; ps 1 has one more.
const entries first_ps{{5, 4, 2, 1}, {6, 4, 0, 1}, {7, 5, 2, 2}, {8, 7, 2, 3}};
const entries second_ps{{5, 4, 2, 1}, {6, 5, 0, 1}, {7, 6, 2, 2}, {8, 7, 2, 3}, {9, 8, 0, 2}};
}  // namespace

TEST_CASE("a plan has the updates that all parameter servers have, and who is next") {
  const faulty_files fs;
  log_of(fs, 0, first_ps), log_of(fs, 1, second_ps);
  const replay_plan plan(fs, "logs");
  CHECK((plan.shape().shards == 2 && plan.shape().workers == 3));
  CHECK((plan.first() == 5 && plan.last() == 8 && plan.of_update() == 1 && plan.logs() == 2));
  CHECK(plan.at(7, 0) == order_entry{7, 5, 2, 2});
  CHECK((plan.read(6, 0, 0) == 4 && plan.read(6, 0, 1) == 5));
  using place = replay_plan::place;
  place p{5, 0};
  CHECK((plan.find(0, p, 8) && p == place{6, 0}));
  p = plan.behind(p);
  CHECK(!plan.find(0, p, 8));
  p = {5, 0};
  CHECK((plan.find(2, p, 8) && p == place{5, 0}));
  p = plan.behind(p);
  CHECK((plan.find(2, p, 8) && p == place{7, 0}));
  p = plan.behind(p);
  CHECK(!plan.find(2, p, 7));
  p = {5, 0};
  CHECK(!plan.find(1, p, 8));
}

TEST_CASE("sets of rounds are in the log of ps 0") {
  const decider_options rounds{.shape = {2, 3}, .mode = staleness::synchronous, .round = {2, 3, false}};
  const faulty_files fs;
  log_of(fs, 0, {{1, 0, 0, 1}, {1, 0, 2, 1}, {2, 1, 0, 2}, {2, 1, 1, 2}}, rounds), log_of(fs, 1, {}, rounds);
  const replay_plan plan(fs, "logs");
  CHECK((plan.first() == 1 && plan.last() == 2 && plan.of_update() == 2 && plan.logs() == 1));
  CHECK(plan.at(2, 1) == order_entry{2, 1, 1, 2});
  CHECK((plan.read(2, 1, 0) == 1 && plan.read(2, 1, 1) == 1));
  CHECK(plan.behind({1, 0}) == replay_plan::place{1, 1});
  CHECK(plan.behind({1, 1}) == replay_plan::place{2, 0});
  plan.must_be(made_from(), rounds, 0), plan.must_be(made_from(), rounds, 1);
}

TEST_CASE("a program has to be the one that was logged") {
  const faulty_files fs;
  log_of(fs, 0, first_ps), log_of(fs, 1, second_ps);
  const replay_plan plan(fs, "logs");
  plan.must_be(made_from(), asynchronous_run, 0), plan.must_be(made_from(), asynchronous_run, 1);
  const auto refused = [&](const cluster_fingerprint& of, const decider_options& how) {
    const std::string why = message_of(status::failed_precondition, [&] { plan.must_be(of, how, 0); });
    CHECK(says(why, "the log in \"logs\" is of another run: "));
    CHECK(says(why, "; replay it with the program and the settings that it was made with"));
    return why;
  };
  cluster_fingerprint other = made_from();
  other.settings[0].second = "0.2";
  CHECK(says(refused(other, asynchronous_run),
             "the setting \"policy 0, rate\" of this program is 0.2, that of the log is 0.1"));
  const decider_options bounded{.shape = {2, 3}, .mode = staleness::bounded, .bound = 2};
  CHECK(says(refused(made_from(), bounded), "leads by\" of this program is 2"));
}

TEST_CASE("logs that are not there, or do not fit each other") {
  SUBCASE("no folder") {
    const std::string why = why_not(faulty_files(), status::not_found);
    CHECK(says(why, "expected the log of ps 0 in \"logs/ps-0\", and there is no file \"logs/ps-0/of\""));
    CHECK(says(why, "give the folder that recovery::log had, with the logs of all parameter servers"));
  }
  SUBCASE("the folder of one parameter server") {
    const faulty_files fs;
    log_of(fs, 0, first_ps);
    CHECK(says(why_not(fs, status::not_found), "expected the log of ps 1 in \"logs/ps-1\""));
  }
  SUBCASE("a run that needs no log of orders") {
    const faulty_files fs;
    const decider_options rounds{.shape = {1, 3}, .mode = staleness::synchronous, .round = {3, 3, false}};
    log_of(fs, 0, {}, rounds);
    const std::string why = why_not(fs, status::not_found);
    CHECK(says(why, "there is no log of orders \"logs/ps-0/orders\": a synchronous run without backups has none"));
    CHECK(says(why, "run its program again, in any cluster"));
  }
  SUBCASE("one log of orders was lost") {
    const faulty_files fs;
    log_of(fs, 0, first_ps), log_of(fs, 1, second_ps);
    REQUIRE(fs.remove("logs/ps-1/orders") == 0);
    const replay_plan plan(fs, "logs");
    CHECK(says(message_of(status::not_found, [&] { plan.must_be(made_from(), asynchronous_run, 1); }),
               "there is no log of orders of ps 1 in \"logs\"; restore ps-1/orders"));
  }
  SUBCASE("one log begins later") {
    const faulty_files fs;
    log_of(fs, 0, first_ps), log_of(fs, 1, {second_ps.begin() + 1, second_ps.end()});
    CHECK(says(why_not(fs, status::failed_precondition),
               "\"logs/ps-1/orders\" begins with update 6, and \"logs/ps-0/orders\" with 5"));
  }
  SUBCASE("one has nothing yet") {
    const faulty_files fs;
    log_of(fs, 0, first_ps), log_of(fs, 1, {});
    CHECK(replay_plan(fs, "logs").last() < replay_plan(fs, "logs").first());
  }
  SUBCASE("two say something else of an update") {
    const faulty_files fs;
    entries other = second_ps;
    other[2].number = 3;
    log_of(fs, 0, first_ps), log_of(fs, 1, other);
    const replay_plan plan(fs, "logs");
    CHECK(plan.at(6, 0).worker == 0);
    const std::string why = message_of(status::data_loss, [&] { plan.at(7, 0); });
    CHECK(says(why, "\"logs/ps-1/orders\" is damaged at byte 64, in update 7: it is gradient 3 of worker 2"));
    CHECK(says(why, "and \"logs/ps-0/orders\" has gradient 2 of worker 2"));
  }
  SUBCASE("a worker that is none") {
    const faulty_files fs;
    log_of(fs, 0, {{5, 4, 3, 1}}), log_of(fs, 1, {{5, 4, 3, 1}});
    const replay_plan plan(fs, "logs");
    CHECK(says(message_of(status::data_loss, [&] { plan.at(5, 0); }), "it is of worker 3, and there are 3"));
  }
  SUBCASE("values of before the log") {
    const faulty_files fs;
    log_of(fs, 0, {{5, 3, 2, 1}}), log_of(fs, 1, {{5, 4, 2, 1}});
    const replay_plan plan(fs, "logs");
    CHECK(says(message_of(status::failed_precondition, [&] { plan.read(5, 0, 0); }),
               "update 5 was computed from the values of update 3, and \"logs/ps-0/orders\" begins behind update 4"));
    CHECK(plan.read(5, 0, 1) == 4);
  }
  SUBCASE("a log in the wrong folder") {
    const faulty_files fs;
    log_of(fs, 0, first_ps), log_of(fs, 1, second_ps);
    fs.bytes("logs/ps-1/orders") = fs.bytes("logs/ps-0/orders");
    CHECK(says(why_not(fs, status::data_loss),
               "is the log of orders of ps 0, with 1 gradients an update; expected one "
               "of ps 1, with 1"));
  }
  SUBCASE("a cluster that no process can be") {
    const faulty_files fs;
    const decider_options huge{.shape = {2, 70'000}};
    server_log(fs, "logs/ps-0", false, made_from(), huge, 0);
    CHECK(says(why_not(fs, status::data_loss), "speaks of 2 ps and 70000 workers; expected 1 to 64 and 1 to 4096"));
  }
}
