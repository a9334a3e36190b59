#include "gradus/codec/bundle_names.hpp"

#include "bundle_files.hpp"

using namespace bundle_test;

namespace {
struct state {
  std::deque<std::vector<std::byte>> owned;
  snapshot content;

  template <class T>
  state& scalar(const std::string& name, T value) {
    content.records.push_back({name, dtype_of<T>, {}, {}, false});
    detail::replace_scalar(content.records.back(), value, owned);
    return *this;
  }
  state& tensors(std::initializer_list<const char*> names) {
    static const float two[] = {1, 2};
    for (const char* name : names) content.records.push_back({name, float32, {2}, bytes(two), false});
    return *this;
  }
  std::string names() const {
    std::string out;
    for (const auto& r : content.records) out += (out.empty() ? "" : " ") + r.name;
    return out;
  }
};
}  // namespace

// What four real checkpoints of TensorFlow hold.
TEST_CASE("bundle_names: powers of beta2 are TensorFlow's running products, bit for bit") {
  const std::pair<std::int64_t, double> real[] = {{1000, 0.3673325479030609},
                                                  {2000, 0.13506826758384705},
                                                  {3000, 0.0496646910905838},
                                                  {46900, 4.18049851831876e-21}};
  for (const auto& [step, power] : real) {
    CHECK(detail::running_power(0.999f, step + 1) == static_cast<float>(power));
    CHECK(detail::running_power(0.9f, step + 1) == 0);  // flushed, as theirs are
    state there;
    there.content.step = step;
    there.scalar("beta1_power", 0.0f).scalar("beta2_power", static_cast<float>(power));
    tensorflow_names{}.from_tensorflow(there.content, there.owned);
    const double here = values<double>(there.content, "beta2_power")[0];
    CHECK(here == doctest::Approx(std::pow(0.999, static_cast<double>(step + 1))).epsilon(1e-12));
    CHECK(values<double>(there.content, "beta1_power")[0] ==
          doctest::Approx(std::pow(0.9, static_cast<double>(step + 1))).epsilon(1e-11));
    tensorflow_names{}.to_tensorflow(there.content, there.owned);
    CHECK(values<float>(there.content, "beta2_power")[0] == static_cast<float>(power));
    CHECK(values<float>(there.content, "beta1_power")[0] == 0);
  }
}

TEST_CASE("bundle_names: powers there and back are what they were") {
  for (const std::int64_t n : {1, 2, 3, 10, 100, 829, 1000, 5000}) {
    state s;
    s.content.step = n + 5;  // the optimizer need not have run at every step
    const double first = detail::running_power(0.9, n), second = detail::running_power(0.999, n);
    s.scalar("beta1_power", first).scalar("beta2_power", second);
    tensorflow_names{}.to_tensorflow(s.content, s.owned);
    CHECK(values<float>(s.content, "beta2_power")[0] == detail::running_power(0.999f, n));
    tensorflow_names{}.from_tensorflow(s.content, s.owned);
    CHECK(values<double>(s.content, "beta1_power")[0] == first);
    CHECK(values<double>(s.content, "beta2_power")[0] == second);
  }
  // Of other betas than was said: the notes keep the double, as long as the float beside it is the one written.
  state s;
  s.scalar("beta1_power", 0.123456789012345).scalar("beta2_power", 0.75);
  tensorflow_names{}.to_tensorflow(s.content, s.owned);
  CHECK(values<float>(s.content, "beta1_power")[0] == 0.123456789012345f);
  tensorflow_names{}.from_tensorflow(s.content, s.owned);
  CHECK(values<double>(s.content, "beta1_power")[0] == 0.123456789012345);
  CHECK(s.content.about.empty());
  tensorflow_names{.scope = "training"}.to_tensorflow(s.content, s.owned);
  for (auto& r : s.content.records)  // trained further in TensorFlow
    if (r.name == "training/beta1_power") detail::replace_scalar(r, 0.111f, s.owned);
  tensorflow_names{.scope = "training"}.from_tensorflow(s.content, s.owned);
  CHECK(values<double>(s.content, "beta1_power")[0] == static_cast<double>(0.111f));
  CHECK(s.content.about.empty());
  state damaged;
  damaged.scalar("beta1_power", 0.5f);
  damaged.content.about["exact beta1_power"] = "12";
  tensorflow_names{}.from_tensorflow(damaged.content, damaged.owned);
  CHECK(values<double>(damaged.content, "beta1_power")[0] == 0.5);
  // Scalars that are none of an optimizer's.
  state other;
  other.scalar("beta1_power_x", 0.5f)
      .scalar("beta1_powers", 0.5f)
      .scalar("beta3_power", 0.5f)
      .scalar("x/beta1_power", 0.5f);
  other.scalar("beta1_power", 1.5f).scalar("beta2_power", std::numeric_limits<float>::quiet_NaN());
  tensorflow_names{}.from_tensorflow(other.content, other.owned);
  CHECK(other.names() == "beta1_power_x beta1_powers beta3_power x/beta1_power beta1_power beta2_power");
  CHECK(other.content.records[3].type == float32);
  CHECK(values<double>(other.content, "beta1_power")[0] == 1.5);
}

TEST_CASE("bundle_names: slots, groups and scopes, both ways") {
  const auto both_ways = [](const tensorflow_names& names, state here, const std::string& expected) {
    const std::string before = here.names();
    names.to_tensorflow(here.content, here.owned);
    CHECK(here.names() == expected);
    names.from_tensorflow(here.content, here.owned);
    CHECK(here.names() == before);
  };
  // Momentum, Adagrad, Adadelta, RMSProp, Ftrl and averages are called alike; nothing moves.
  for (const std::string optimizer : {"GradientDescent", "Momentum", "Adagrad", "Adadelta", "RMSProp", "Ftrl"}) {
    state s;
    s.tensors({"w", "w/Momentum", "w/Adagrad", "w/Adadelta", "w/Adadelta_1", "w/RMSProp", "w/RMSProp_1", "w/RMSProp_2",
               "w/Ftrl", "w/Ftrl_1", "w/ExponentialMovingAverage"});
    s.scalar("global_step", std::int64_t{3});
    both_ways({.optimizer = optimizer}, s, s.names());
  }
  state adam;
  adam.tensors({"w", "w/Adam", "w/Adam_1", "b", "b/Adam", "b/Adam_1", "v/Adam", "w/Adam_x", "w/Adamant"});
  adam.scalar("beta1_power", 0.9).scalar("beta2_power", 0.999);
  adam.scalar("group_1/beta1_power", 0.81).scalar("group_1/beta2_power", 0.998001);
  adam.scalar("global_step", std::int64_t{3});
  both_ways({}, adam,
            "w w/Adam w/Adam_1 b b/Adam b/Adam_1 v/Adam w/Adam_x w/Adamant beta1_power beta2_power beta1_power_1 "
            "beta2_power_1 global_step");
  both_ways({.called = "mine", .scope = "training", .global_step = "Variable"}, adam,
            "w w/mine w/mine_1 b b/mine b/mine_1 v/Adam w/Adam_x w/Adamant training/beta1_power training/beta2_power "
            "training/beta1_power_1 training/beta2_power_1 Variable");
}

TEST_CASE("bundle_names: steps of other types become int64") {
  for (int type = 0; type < 3; ++type) {
    state s;
    if (type == 0) s.scalar("Variable", std::int32_t{2010});
    if (type == 1) s.scalar("Variable", 2010.0f);
    if (type == 2) s.scalar("Variable", std::int64_t{2010});
    tensorflow_names{.global_step = "Variable"}.from_tensorflow(s.content, s.owned);
    CHECK(s.content.records[0].type == int64);
    CHECK(values<std::int64_t>(s.content, "global_step")[0] == 2010);
  }
  state s;
  s.scalar("global_step", 0.5f);
  tensorflow_names{}.from_tensorflow(s.content, s.owned);
  CHECK(s.content.records[0].type == float32);  // no step: whoever restores will say so
}

TEST_CASE("bundle_names: the old names of slots of partitioned variables") {
  state s;
  s.tensors({"w", "w/part_0/Ftrl", "w/part_0/Ftrl_1", "dnn/hiddenlayer_0/weights",
             "dnn/hiddenlayer_0/weights/enlayer_0/weights/part_0/Ftrl", "x/part_0/Ftrl", "w/other/part_0/Ftrl", "y",
             "y/Ftrl", "y/part_0/Ftrl"});
  tensorflow_names{"Ftrl"}.from_tensorflow(s.content, s.owned);
  CHECK(s.names() ==
        "w w/Ftrl w/Ftrl_1 dnn/hiddenlayer_0/weights dnn/hiddenlayer_0/weights/Ftrl x/part_0/Ftrl "
        "w/other/part_0/Ftrl y y/Ftrl y/part_0/Ftrl");
}
