#include "gradus/cluster/protocol/measured.hpp"

#include "outside.hpp"

using namespace protocol_tests;

namespace {
struct open_update {
  bool open = true;
  std::vector<double> list = {2, 0};
  bool is_open() const { return open; }
  std::size_t round() const { return 1; }
  std::uint64_t order() const { return 7; }
  std::span<const double> measures() const { return list; }
};
}  // namespace

TEST_CASE("a list is said again until its update is not open any more") {
  seen_outside out;
  open_update u;
  measured_list list(3, 100, out);
  list.begin(u, 10);
  const lines said{"measured to 0: i0 s1 a7 [2 0]"};
  CHECK(out.take() == said);
  CHECK((list.since() == 10 && list.next(u) == 110));
  list.advance(u, 109);
  CHECK(out.take().empty());
  list.advance(u, 110);
  CHECK(out.take() == said);
  CHECK((list.since() == 10 && list.next(u) == 210));
  u.open = false;
  list.advance(u, 300);
  CHECK(out.take().empty());
  CHECK(list.next(u) == never_due);
}
