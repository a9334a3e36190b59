// one thread: nothing here runs at the same time
#include <gradus/run/update_step.hpp>

#include <doctest/doctest.h>

#include <gradus/cpu/device.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/lamb.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <gradus/update/weight_decay.hpp>

#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "as_updater.hpp"

using namespace gradus;

namespace {

// Two variables of one element each, stepped by hand.
template <class Update>
struct two {
  update_step<Update> step;
  double theta[2] = {1, 2}, gradient[2] = {};
  std::vector<std::vector<double>> kept =
      std::vector<std::vector<double>>(2, std::vector<double>(Update::mirror_count));
  subject_state<Update> state[2] = {{step.update, "a", extents{1}}, {step.update, "b", extents{1}}};

  explicit two(const Update& u) : step(u) {}
  template <class F>
  void each(F f) {
    for (int i = 0; i < 2; ++i) {
      std::vector<double*> mirrors;
      for (double& x : kept[static_cast<std::size_t>(i)]) mirrors.push_back(&x);
      mirrors.push_back(nullptr);
      auto one = step.template of<cpu<fast>, double>(state[i], {theta + i, mirrors.data(), {}},
                                                     {gradient + i, 1, nullptr, false, 0, {}});
      f(one);
    }
  }
  double apply(double a, double b) {
    gradient[0] = a, gradient[1] = b;
    step.begin();
    const double norm = step.know_all([&](auto f) { each(f); }, [] { return 0.0; });
    each([&](auto& one) { step.apply(one); });
    step.finish();
    return norm;
  }
};

// Every second variable, and a state of the optimizer of its own: what one of two machines holds.
struct array {
  std::string name;
  std::vector<float> theta, gradient;
  std::vector<std::vector<float>> mirrors;
};
template <class Update>
struct shard {
  update_step<Update> step;

  template <class F>
  void with(array& a, subject_state<Update>& state, F f) {
    std::vector<float*> mirrors;
    for (auto& m : a.mirrors) mirrors.push_back(m.data());
    mirrors.push_back(nullptr);
    auto one = step.template of<cpu<fast>, float>(state, {a.theta.data(), mirrors.data(), {}},
                                                  {a.gradient.data(), a.gradient.size(), nullptr, false, 0, {}});
    f(one);
  }
};
// Two shards whose sums are added, variable by variable, beside an updater that holds all: the same bits.
template <class... Policies>
void two_shards_are_one(Policies... policies) {
  using update_type = composed<Policies...>;
  using shard_type = shard<update_type>;
  const update_type update(policies...);
  std::array<shard_type, 2> shards{shard_type{update_step<update_type>(update)},
                                   shard_type{update_step<update_type>(update)}};
  run_test::draws draw;
  std::vector<array> arrays;
  for (const std::size_t n : {std::size_t{7}, std::size_t{150}, std::size_t{1}, std::size_t{33}, std::size_t{64}})
    arrays.push_back({text("v", n), draw.operator()<float>(n), {}, {}});
  std::vector<subject_state<update_type>> states;
  for (auto& a : arrays) {
    const auto& s = states.emplace_back(update, a.name, extents{static_cast<std::int64_t>(a.theta.size())});
    for (const mirror& m : update.mirrors(s.branch))
      a.mirrors.push_back(m.starts_as_variable ? a.theta
                                               : std::vector<float>(a.theta.size(), static_cast<float>(m.initial)));
  }
  std::vector<array> whole = arrays;
  updater u{policies...};
  for (auto& a : whole) u.track(a.name, a.theta);

  const auto owner = [&](std::size_t i) -> shard_type& { return shards[i % 2]; };
  const auto measured = [&]<std::size_t Round>() {
    measured_sums<update_type> all;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      measured_sums<update_type> own;
      owner(i).step.template measure<Round>([&](auto f) { owner(i).with(arrays[i], states[i], f); }, own);
      all += own;
    }
    return all;
  };
  for (int n = 0; n < 9; ++n) {
    std::vector<named_gradient> named;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      arrays[i].gradient = draw.operator()<float>(arrays[i].theta.size());
      if (n == 5 && i == 3 && (update_type::scales_loss || update_type::looks_for_not_finite))
        arrays[i].gradient[8] = std::numeric_limits<float>::infinity();  // one shard alone sees it
      named.emplace_back(arrays[i].name, arrays[i].gradient);
    }
    u.apply(named);
    for (auto& s : shards) s.step.begin();
    const auto sums = measured.template operator()<0>();
    for (auto& s : shards) CHECK(s.step.settle(sums, [] { return 0.0; }) == u.gradient_norm());
    if constexpr (update_type::global_stages == 1) {
      if (shards[0].step.changes()) {
        const auto stage = measured.template operator()<1>();
        for (std::size_t i = 0; i < arrays.size(); ++i)
          owner(i).step.template settle_stage<1>([&](auto f) { owner(i).with(arrays[i], states[i], f); }, stage);
      }
    }
    for (std::size_t i = 0; i < arrays.size(); ++i)
      owner(i).with(arrays[i], states[i], [&](auto& one) { owner(i).step.apply(one); });
    for (auto& s : shards) {
      s.step.finish();
      CHECK(s.step.skips() == u.skipped());
      CHECK(s.step.update.loss_scale() == u.loss_scale());
    }
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      INFO(n << " " << arrays[i].name);
      CHECK(std::memcmp(arrays[i].theta.data(), whole[i].theta.data(), arrays[i].theta.size() * sizeof(float)) == 0);
    }
  }
}

}  // namespace

TEST_CASE("two shards that add what they measure make the update of one owner, bit for bit") {
  two_shards_are_one(gradient_descent{.rate = 0.1}, clip_by_global_norm{0.5});
  two_shards_are_one(momentum{.rate = 0.1}, clip_by_global_norm{2.0}, not_finite::skip{});
  two_shards_are_one(adam{.rate = 0.1}, clip_by_global_norm{0.5}, dynamic_loss_scale{.initial = 8});
  two_shards_are_one(adam{.rate = 0.1}, accumulate{3}, clip_by_global_norm{0.5}, not_finite::skip{});
  two_shards_are_one(lamb{.rate = 0.1}, clip_by_global_norm{0.5}, static_loss_scale{4});
  two_shards_are_one(
      chain{weight_decay{0.1, decay_mode::coupled}, clip_by_global_norm{0.5}, gradient_descent{.rate = 1}},
      not_finite::skip{});
}

TEST_CASE("a global norm inside a chain is over all variables, of what reaches it") {
  const composed update{
      chain{weight_decay{1.0, decay_mode::coupled}, clip_by_global_norm{5.0}, gradient_descent{.rate = 1}}};
  two<std::remove_const_t<decltype(update)>> t{update};
  t.apply(5, 6);  // with decay 6 and 8, of norm 10; halved
  CHECK(t.theta[0] == doctest::Approx(1 - 3));
  CHECK(t.theta[1] == doctest::Approx(2 - 4));
}

TEST_CASE("accumulated gradients are one step of their mean, and the norm is the mean's") {
  const composed update{accumulate{2}, clip_by_global_norm{2.5}, gradient_descent{.rate = 1}};
  two<std::remove_const_t<decltype(update)>> t{update};
  t.apply(2, 8);
  CHECK((t.theta[0] == 1 && t.theta[1] == 2));
  CHECK(t.apply(4, 0) == doctest::Approx(5));  // of (3, 4)
  CHECK(t.theta[0] == doctest::Approx(1 - 1.5));
  CHECK(t.theta[1] == doctest::Approx(2 - 2));
  CHECK((t.kept[0][0] == 0 && t.kept[1][0] == 0));
}

TEST_CASE("a step that a loss scale leaves out changes nothing") {
  const composed update{dynamic_loss_scale{.initial = 8}, gradient_descent{.rate = 1}};
  two<std::remove_const_t<decltype(update)>> t{update};
  t.apply(8, 16);
  CHECK((t.theta[0] == 0 && t.theta[1] == 0));
  t.apply(std::numeric_limits<double>::infinity(), 1);
  CHECK((t.theta[0] == 0 && t.theta[1] == 0));
  CHECK(t.step.update.loss_scale() == 4);
}
