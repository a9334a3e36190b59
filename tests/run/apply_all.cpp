// one thread: nothing here runs at the same time
#include <gradus/run/apply_all.hpp>

#include <doctest/doctest.h>

#include <gradus/cpu/sweeps.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/weight_decay.hpp>
#include <vector>

using namespace gradus;

namespace {

// Two variables of one element each, stepped by hand.
template <class Update>
struct two {
  Update update;
  double theta[2] = {1, 2}, gradient[2] = {};
  std::vector<std::vector<double>> kept =
      std::vector<std::vector<double>>(2, std::vector<double>(Update::mirror_count));
  subject_state<Update> state[2] = {{update, "a", extents{1}}, {update, "b", extents{1}}};
  std::int64_t step = 0;

  template <class F>
  void each(double scale, F f) {
    for (int i = 0; i < 2; ++i) {
      std::vector<double*> mirrors;
      for (double& x : kept[static_cast<std::size_t>(i)]) mirrors.push_back(&x);
      mirrors.push_back(nullptr);
      variable_step<sweeps<fast>, double, Update> one(update, state[i], {theta + i, mirrors.data(), {}},
                                                      {gradient + i, 1, nullptr, false, 0, {}}, scale, step);
      f(one);
    }
  }
  double apply(double a, double b) {
    gradient[0] = a, gradient[1] = b;
    double scale = 1;
    const double norm = know_all(update, update.prepare_branches(step), step, scale, [&](auto f) { each(scale, f); });
    each(scale, [&](auto& one) { finish_one(update, one, step); });
    update.finish(step++);
    return norm;
  }
};

}  // namespace

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
  CHECK(t.update.loss_scale() == 4);
}
