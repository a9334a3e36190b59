#include <gradus/run/mirrors.hpp>

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include <gradus/base/state.hpp>
#include <gradus/update/average.hpp>
#include <gradus/update/composed.hpp>
#include <gradus/update/rules/adagrad.hpp>
#include <gradus/update/rules/adam.hpp>

using namespace gradus;

namespace {
// A variable of two numbers and its mirrors.
template <class T, class Update>
struct one {
  Update update;
  std::array<T, 2> values{T(3), T(-4)};
  std::vector<std::array<T, 2>> mirrors = std::vector<std::array<T, 2>>(Update::mirror_count);

  explicit one(const Update& u) : update(u) {
    detail::each_mirror(update, 0, extents{2}, [&](std::size_t k, const mirror& m, const extents& dims) {
      CHECK(dims == extents{2});
      detail::start_mirror(m, dtype_of<T>, at(k), sizeof(T) * 2, reinterpret_cast<const std::byte*>(values.data()));
    });
  }
  std::byte* at(std::size_t k) { return reinterpret_cast<std::byte*>(mirrors[k].data()); }
  tensor_view view() { return std::span<T>(values); }
};
}  // namespace

TEST_CASE_TEMPLATE("a slot starts at its initial value, an average as the variable", T, float, double) {
  one<T, composed<adagrad, exponential_moving_average>> a(
      composed{adagrad{.rate = 0.1, .initial_accumulator_value = 0.25}, exponential_moving_average{.decay = 0.5}});
  CHECK(a.mirrors[0] == std::array<T, 2>{T(0.25), T(0.25)});
  CHECK(a.mirrors[1] == std::array<T, 2>{T(3), T(-4)});
}

TEST_CASE("averages change places with variables, and back") {
  one<float, composed<adagrad, exponential_moving_average>> a(
      composed{adagrad{.rate = 0.1}, exponential_moving_average{}});
  a.mirrors[1] = {7, 8};
  const auto swap = [&] {
    return detail::swap_evaluation_copy(a.update, 0, "w", {2}, a.view().mutable_bytes(),
                                        [&](std::size_t k) { return a.at(k); });
  };
  CHECK(swap());
  CHECK(a.values == std::array<float, 2>{7, 8});
  CHECK(a.mirrors[1] == std::array<float, 2>{3, -4});
  CHECK(swap());
  CHECK(a.values == std::array<float, 2>{3, -4});

  one<float, composed<adam>> none(composed{adam{.rate = 0.1}});
  CHECK(!detail::swap_evaluation_copy(none.update, 0, "w", {2}, none.view().mutable_bytes(),
                                      [&](std::size_t k) { return none.at(k); }));
}

TEST_CASE("a checkpoint holds a variable and its mirrors under TensorFlow's names") {
  one<float, composed<adam>> a(composed{adam{.rate = 0.1}});
  state_list list;
  detail::remember_variable(
      list, a.update, 0, "w", float32, extents{2}, a.view().mutable_bytes(), [&](std::size_t k) { return a.at(k); },
      [](const mirror& m) { return checkpoint_name("w", m); });
  std::string names;
  for (const auto& e : list.entries()) names += e.name + " ";
  CHECK(names == "w w/Adam w/Adam_1 ");
  CHECK(list.find("w/Adam_1")->bytes.data() == a.at(1));
  CHECK(list.find("w/Adam_1")->bytes.size() == 8);
}
