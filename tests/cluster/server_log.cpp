// What a parameter server keeps in its folder: the file of orders, and what the run is made from.
#include <gradus/cluster/server_log.hpp>
#include <gradus/testing/faulty_files.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "../message.hpp"

using namespace gradus;
using namespace gradus::detail;
using testing::faulty_files;

namespace {

std::vector<std::uint64_t> orders_in(const faulty_files& fs) {
  const std::vector<std::byte>& bytes = fs.bytes("orders");
  std::vector<std::uint64_t> all;
  for (std::size_t at = 0; at + 16 <= bytes.size(); at += 16) {
    std::uint64_t order;
    std::memcpy(&order, &bytes[at], sizeof order);
    all.push_back(order);
  }
  return all;
}
cluster_fingerprint made_from() {
  return {.model = "m", .rule = "adam", .settings = {{"policy 0, rate", "0.1"}}, .variables = {{"w", float32, {3}}}};
}

}  // namespace

TEST_CASE("each order stands once in the file, whatever is said again and wherever it was torn") {
  using orders = std::vector<std::uint64_t>;
  const faulty_files fs;
  {
    order_file file(fs, "orders");
    CHECK(file.last() == 0);
    for (std::uint64_t n = 7; n <= 9; ++n) file.add({n, 1, 2});
    CHECK(fs.bytes("orders").empty());
    file.sync(false);
    CHECK(orders_in(fs) == orders{7, 8, 9});
  }
  const std::vector<std::byte> whole = fs.bytes("orders");
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    const faulty_files torn = fs.after_kill();
    torn.bytes("orders").resize(cut);
    order_file file(torn, "orders");
    CHECK(file.last() == (cut < 16 ? 0 : 6 + cut / 16));
    for (std::uint64_t n = 7; n <= 11; ++n) file.add({n, 1, 2});
    file.sync(true);
    CHECK(orders_in(torn) == orders{7, 8, 9, 10, 11});
    CHECK(torn.bytes("orders").size() == 5 * 16);
  }
  // What a power failure leaves may be zeros.
  fs.bytes("orders").resize(80);
  order_file file(fs, "orders");
  CHECK(file.last() == 9);
  CHECK(fs.bytes("orders") == whole);
  const std::string gap = message_of(status::data_loss, [&] { file.add({11, 0, 0}); });
  CHECK(says(gap, "\"orders\" ends with order 9, and the next one is 11"));
  CHECK(says(gap, "move the file away"));
}

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

TEST_CASE("orders are written by ps 0 of an asynchronous run, and before a snapshot that forgets them") {
  const faulty_files fs;
  const decider_options how{.shape = {2, 3}};
  CHECK(!server_log(fs, "ps-1", false, made_from(), how, 1).orders.has_value());
  const decider_options rounds{.shape = {2, 3}, .mode = staleness::synchronous, .round = {3, 3, false}};
  CHECK(!server_log(fs, "ps-2", false, made_from(), rounds, 0).orders.has_value());
  server_log log(fs, "ps-0", false, made_from(), how, 0);
  log.log.recover([](bytes_in&) {}, [](std::span<const std::byte>) { return true; });
  log.orders->add({1, 0, 1});
  CHECK(fs.bytes("ps-0/orders").empty());
  log.snapshot([](bytes_out) {});
  CHECK(fs.bytes("ps-0/orders").size() == 16);
}
