#include <gradus/update/momentum.hpp>

#include "trajectory.hpp"

using namespace gradus;

TEST_CASE("momentum follows TensorFlow's trajectories, plain and Nesterov, dense and sparse") {
  const auto cases = trajectory::replay_all("Momentum", [](const golden::json& p) {
    return composed{momentum{.rate = p.at("learning_rate").get<double>(),
                             .decay = p.at("momentum").get<double>(),
                             .use_nesterov = p.value("use_nesterov", false)}};
  });
  CHECK(cases == 11);
}

TEST_CASE("momentum keeps one slot, named as in TensorFlow's checkpoints") {
  const auto mirrors = composed{momentum{.rate = 1.0}}.mirrors();
  REQUIRE(mirrors.size() == 1);
  CHECK(mirrors[0].slot == "momentum");
  CHECK(checkpoint_name("layer/w", mirrors[0]) == "layer/w/Momentum");
}
