// The log of orders: each update stands once in it, wherever it was torn; what was damaged is an error, and never
// another order.
#include <gradus/cluster/order_log.hpp>
#include <gradus/testing/faulty_files.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "../message.hpp"
#include "log_page.hpp"

using namespace gradus;
using namespace gradus::detail;
using testing::faulty_files;

namespace {
// Of update n of ps 3.
order_entry entry_of(std::uint64_t n, std::uint32_t i = 0) {
  return {n, n - 1 - n % 3, static_cast<std::uint32_t>(n % 5 + i), static_cast<std::uint32_t>(n / 2 + i)};
}
void add(order_file& to, std::uint64_t first, std::uint64_t last, std::uint32_t of_update) {
  for (std::uint64_t n = first; n <= last; ++n)
    for (std::uint32_t i = 0; i < of_update; ++i) to.add(entry_of(n, i));
}
void holds(const faulty_files& fs, std::uint64_t first, std::uint64_t last, std::uint32_t of_update) {
  const order_log log(fs, "orders");
  CHECK((log.of().number == 3 && log.of().of_update == of_update));
  CHECK((log.first() == first && log.last() == last));
  for (std::uint64_t n = first; n <= last; ++n)
    for (std::uint32_t i = 0; i < of_update; ++i) CHECK(log.at(n, i) == entry_of(n, i));
}
}  // namespace

TEST_CASE("each update stands once in the file, whatever is said again and wherever it was torn") {
  for (const std::uint32_t of_update : {1u, 2u}) {
    const order_log_of of{3, of_update};
    const faulty_files fs;
    {
      order_file file(fs, "orders", of);
      CHECK(file.last() == 0);
      add(file, 7, 9, of_update);
      CHECK(fs.bytes("orders").empty());
      file.sync(false);
      CHECK(file.last() == 9);
      holds(fs, 7, 9, of_update);
    }
    const std::vector<std::byte> whole = fs.bytes("orders");
    CHECK(whole.size() == 32 + 3 * 16 * of_update);
    for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
      CAPTURE(cut);
      const faulty_files torn = fs.after_kill();
      torn.bytes("orders").resize(cut);
      const std::uint64_t left = cut < 32 ? 0 : (cut - 32) / (16 * of_update);
      const order_log before(torn, "orders");
      CHECK(before.last() - before.first() + 1 == left);
      order_file file(torn, "orders", of);
      CHECK(file.last() == (left == 0 ? 0 : 6 + left));
      add(file, 7, 11, of_update);
      file.sync(true);
      holds(torn, 7, 11, of_update);
      CHECK(torn.bytes("orders").size() == 32 + 5 * 16 * of_update);
    }
    // What a power failure leaves may be zeros.
    fs.bytes("orders").resize(whole.size() + 40);
    holds(fs, 7, 9, of_update);
    order_file file(fs, "orders", of);
    CHECK(file.last() == 9);
    CHECK(fs.bytes("orders") == whole);
    const std::string gap = message_of(status::data_loss, [&] { file.add(entry_of(11)); });
    CHECK(says(gap, "\"orders\" ends with order 9, and the next one is 11"));
    CHECK(says(gap, "move the file away"));
  }
  const faulty_files zeros;
  { const order_file file(zeros, "orders", {}); }
  zeros.bytes("orders").resize(100);
  CHECK(order_log(zeros, "orders").last() == 0);
  { const order_file file(zeros, "orders", {}); }
  CHECK(zeros.bytes("orders").empty());
}

TEST_CASE("what a parameter server came back without goes away") {
  for (const std::uint64_t order : {5u, 6u, 7u, 10u, 12u, 20u}) {
    CAPTURE(order);
    const faulty_files fs;
    {
      order_file file(fs, "orders", {3, 2});
      add(file, 7, 12, 2);
      file.sync(false);
    }
    order_file file(fs, "orders", {3, 2});
    file.keep(order);
    const std::uint64_t last = order < 7 ? 0 : std::min<std::uint64_t>(order, 12);
    CHECK(file.last() == last);
    if (last != 0) holds(fs, 7, last, 2);
    add(file, last == 0 ? 7 : last + 1, 14, 2);
    file.sync(false);
    holds(fs, 7, 14, 2);
  }
}

TEST_CASE("no flipped bit is another order") {
  const faulty_files fs;
  {
    order_file file(fs, "orders", {3, 2});
    add(file, 7, 12, 2);
    file.sync(false);
  }
  const std::size_t last = fs.bytes("orders").size() - 16;
  for (std::size_t at = 0; at < fs.bytes("orders").size(); ++at)
    for (const int bit : {0, 3, 7}) {
      CAPTURE(at);
      const std::byte was = fs.bytes("orders")[at];
      fs.bytes("orders")[at] ^= std::byte{1} << bit;
      if (at >= last) {  // as one that was torn
        const order_log log(fs, "orders");
        CHECK(log.last() == 11);
      } else {
        const auto kind = at < 4 ? status::failed_precondition : status::data_loss;
        const std::string why = message_of(kind, [&] { order_log(fs, "orders"); });
        if (at >= 32) {
          CHECK(says(why, text("the log of orders \"orders\" is damaged at byte ", at - at % 16)));
          CHECK(says(why, "move it away: the run goes on without it"));
        }
        const std::vector<std::byte> before = fs.bytes("orders");
        CHECK(message_of(kind, [&] { order_file(fs, "orders", {3, 2}).keep(12); }) == why);
        CHECK(fs.bytes("orders") == before);
        if (at >= 32) {  // the updates that a log still has can be written again, and no others
          const std::uint64_t hurt = 7 + (at - 32) / 32;
          CHECK(message_of(kind, [&] { order_file(fs, "orders", {3, 2}).keep(hurt); }) == why);
          CHECK(message_of(kind, [&] {
                  order_file file(fs, "orders", {3, 2});
                  add(file, hurt + 1, 13, 2);
                  file.keep(13);
                }) == why);
          CHECK(fs.bytes("orders") == before);
          {
            order_file file(fs, "orders", {3, 2});
            add(file, at % 2 == 0 ? hurt : 7, 12, 2);
            file.keep(12);
            file.sync(false);
          }
          holds(fs, 7, 12, 2);
          fs.bytes("orders") = before;
          { order_file(fs, "orders", {3, 2}).keep(hurt - 1); }
          if (hurt > 7) holds(fs, 7, hurt - 1, 2);
          fs.bytes("orders") = before;
        }
      }
      fs.bytes("orders")[at] = was;
    }
  holds(fs, 7, 12, 2);
}

TEST_CASE("a file of another format, or of another parameter server") {
  const faulty_files fs;
  {
    order_file file(fs, "orders", {3, 1});
    add(file, 1, 4, 1);
    file.sync(false);
  }
  CHECK(says(message_of(status::failed_precondition,
                        [&] {
                          order_file(fs, "orders", {2, 1});
                        }),
             "is the log of orders of ps 3, with 1 gradients an update; expected one of ps 2, with 1"));
  CHECK(says(message_of(status::not_found, [&] { order_log(fs, "elsewhere"); }), "elsewhere"));
  // Version 1 had 16 bytes an update without a head: uint64 order, uint32 worker, uint32 number.
  std::vector<std::byte>& bytes = fs.bytes("orders");
  for (const std::size_t updates : {1u, 4u}) {
    bytes.assign(16 * updates, std::byte{0});
    for (std::size_t i = 0; i < updates; ++i)
      bytes[16 * i] = static_cast<std::byte>(i + 1), bytes[16 * i + 12] = std::byte{1};
    const std::string why = message_of(status::failed_precondition, [&] { order_log(fs, "orders"); });
    CHECK(says(why, "\"orders\" is of version 1 of the format"));
    CHECK(says(why, "this build reads version 2; use the build that wrote it"));
    CHECK(message_of(status::failed_precondition, [&] { order_file(fs, "orders", {3, 1}); }) == why);
  }
}

TEST_CASE("what a stranger says of an update is not believed") {
  const faulty_files fs;
  order_file file(fs, "orders", {3, 1});
  file.add({5, 9, 1, 1});  // from values that were none yet
  file.add({6, 5, 1, 2});
  file.sync(false);
  const order_log log(fs, "orders");
  CHECK(log.at(5, 0).read == 4);
  CHECK(says(message_of(status::data_loss, [&] { log.refuse(6, 0, "why"); }),
             "the log of orders \"orders\" is damaged at byte 48, in update 6: why"));
}

TEST_CASE("the page's worked example is what is written") {
  const faulty_files fs;
  order_file file(fs, "orders", {1, 1});
  file.add({41, 38, 2, 17});
  file.sync(false);
  log_page::must_show(fs.bytes("orders"));
}
