#include <gradus/cluster/store_state.hpp>

#include <doctest/doctest.h>

#include <gradus/cluster/store_variables.hpp>

#include <cstring>

using namespace gradus;
using detail::find_stored;
using detail::wire_slice;

namespace {
struct some_state {
  std::vector<float> w{1, 2}, empty;
  double power = 0.5;
  state_list list;
  some_state() {
    list.tensor("w", {2}, std::span(w));
    list.tensor("none", {0}, std::span(empty));
    list.scalar("power", power);
  }
};
template <class T>
wire_slice slice(std::string_view name, const std::vector<T>& x, std::uint64_t begin = 0) {
  return {name, dtype_of<T>, begin, std::as_bytes(std::span(x))};
}
}  // namespace

TEST_CASE("entries find their parts by name, an optimizer's own state by both of its names") {
  some_state s;
  const std::vector<float> w{3, 4}, empty, other{9};
  const std::vector<double> power{0.25};
  const wire_slice parts[] = {slice("power", power), slice("x", other), slice("w", w), slice("none", empty)};
  const auto found = find_stored(s.list.entries(), parts);
  REQUIRE(found.size() == 3);
  CHECK(found[0].data() == reinterpret_cast<const std::byte*>(w.data()));
  CHECK(found[1].data() != nullptr);  // it is there, without elements
  CHECK(found[1].empty());
  CHECK(found[2].data() == reinterpret_cast<const std::byte*>(power.data()));
  const wire_slice marked[] = {slice(":power", power), slice("power", power)};
  const auto again = find_stored(s.list.entries(), marked);
  CHECK(again[2].size() == 8);
  CHECK(again[0].data() == nullptr);
  CHECK(again[1].data() == nullptr);
}
TEST_CASE("a part that does not fit its entry is refused") {
  some_state s;
  const auto refused = [&](std::vector<wire_slice> parts, const char* what) {
    CHECK_THROWS_WITH_AS(find_stored(s.list.entries(), parts), what, data_loss);
  };
  const std::vector<float> one{1}, two{1, 2}, others{1, 3};
  const std::vector<double> doubles{1, 2};
  refused({slice("w", one)}, "the state \"w\" has 1 elements of float32; expected 2 of float32");
  refused({slice("w", doubles)}, "the state \"w\" has 2 elements of float64; expected 2 of float32");
  refused({slice("w", two, 2)},
          "the state \"w\" has 2 elements of float32, not from its first on; expected 2 of float32");
  wire_slice values = slice("w", two);
  values.role = detail::slice_role::values;
  refused({values}, "the state \"w\" has 2 elements of float32, which are no values; expected 2 of float32");
  wire_slice torn = slice("w", two);
  torn.bytes = torn.bytes.first(7);
  refused({torn}, "the state \"w\" has 7 bytes, which are no whole elements of float32");
  refused({slice("w", two), slice("w", others)}, "the state \"w\" is listed twice, with different values");
  CHECK(find_stored(s.list.entries(), std::vector{slice("w", two), slice("w", two)})[0].size() == 8);
}
