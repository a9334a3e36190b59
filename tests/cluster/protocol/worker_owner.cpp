#include "gradus/cluster/protocol/worker.hpp"

#include "outside.hpp"

using namespace protocol_tests;

namespace {
// An owner that neither begins nor fetches says nothing of it.
struct plain_owner final : worker_owner {
  std::uint64_t computed = 0;
  void values(std::uint32_t, std::uint64_t, std::span<const wire_slice>) override {}
  void compute(std::uint64_t step) override { computed = step; }
  void concluded(token_verdict, std::uint64_t) override {}
  void outcome(bool) override {}
  void waits_long(const std::string&) override {}
};
}  // namespace

TEST_CASE("an owner answers what it cares for, and the rest has bodies that do nothing") {
  seen_outside out;
  plain_owner owner;
  worker_half w({.number = 0, .shape = {1, 1}}, owner, out);
  const contribution_id id[] = {{4, 0, 0}};
  w.start(1, 2, 0);
  w.receive({message_kind::joined, 0, 1, 1, 2, 0, id, {}}, 0);
  w.receive({message_kind::token, 0, 1, 1, 0, 3, id, {}}, 0);
  w.receive({message_kind::pulled, 0, 1, 1, 0, 3, {}, {}}, 0);
  CHECK(owner.computed == 3);
  w.fetch(0);
  w.receive({message_kind::held, 0, 1, 1, 1, 3, {}, {}}, 0);
  out.take();
  w.receive({message_kind::fetched, 0, 1, 1, 1, 3, {}, {}}, 0);
  CHECK(out.take() == lines{"release to 0: i1 s1 a0"});
  CHECK(w.state() == worker_half::states::computing);
  CHECK(!worker_options{}.begins);
}
