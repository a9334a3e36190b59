#include <gradus/estimator/checkpoint_values.hpp>

#include <gradus/checkpoint/saver.hpp>
#include <gradus/codec/safetensors.hpp>
#include <gradus/codec/tensor_bundle.hpp>
#include <gradus/cpu/device.hpp>
#include <gradus/run/session.hpp>
#include <gradus/session/global_step.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/export_saved_model.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace gradus;

namespace {
// A session of w, u and a global step, saved by a codec.
template <class Codec>
void save(const std::string& directory, Codec c, float w, float u, std::int64_t step) {
  graph g;
  const value at = create_global_step(g);
  g.variable("w", {2}, {.init = constant_initializer(w)}), g.variable("u", {}, {.init = constant_initializer(u)});
  session s{g};
  s.initialize(1);
  s.mutable_variable("global_step").mutable_as<std::int64_t>()[0] = step;
  state_list list;
  s.remembers(list);
  saver<Codec>(saver_options{}, c).save(list, join_path(directory, "model"), step);
  static_cast<void>(at);
}
}  // namespace

TEST_CASE("what a checkpoint of any codec holds, by its directory or path") {
  const auto look = [](auto codec) {
    testing::temp_dir dir;
    save(dir.path(), codec, 2, 3, 7);
    const std::string path = latest_checkpoint(posix{}, dir.path());
    CHECK(detail::find_checkpoint(path).codec.name == codec.name);
    CHECK(detail::variables_in(path, {}) == std::vector<std::string>{"global_step", "u", "w"});
    CHECK(detail::variable_in(path, "w", {}).as<float>()[1] == 2);
    CHECK(detail::variable_in(dir.path(), "u", {}).number() == 3);
    CHECK(detail::step_in_directory(dir.path()) == 7);
    CHECK_THROWS_WITH_AS(detail::variable_in(path, "x", {}), doctest::Contains("it has: \"global_step\", \"u\", \"w\""),
                         not_found);
  };
  look(flat_binary{}), look(safetensors{}), look(tensor_bundle{});
}

TEST_CASE("an export is a checkpoint, whatever codec other checkpoints have") {
  testing::temp_dir dir;
  graph g;
  g.variable("w", {2}, {.init = constant_initializer(5)});
  session s{g};
  s.initialize(1);
  const export_graph one{&g, {}};
  const std::string path = export_saved_model(dir.path(), s, std::span(&one, 1));
  CHECK(detail::find_checkpoint(path).path == path + "/variables/variables");
  CHECK(detail::find_checkpoint(path).codec.name == tensor_bundle::name);
  CHECK(detail::variable_in(path, "w", {}).as<float>()[1] == 5);
}

TEST_CASE("no checkpoint, and one that cannot be read, are step 0") {
  testing::temp_dir dir;
  CHECK(detail::step_in_directory(dir.path()) == 0);
  CHECK(detail::step_in_directory(dir.path() + "/none") == 0);
  CHECK_THROWS_WITH_AS(detail::needed_checkpoint("", "dir"),
                       "could not find a trained model: \"dir\" has no checkpoint; train first", not_found);
  publish(posix{}, dir.path() + "/checkpoint", "nonsense");
  CHECK(detail::step_in_directory(dir.path()) == 0);
}

TEST_CASE("variables of another graph: those that it has; more in the checkpoint does not matter, less and others do") {
  testing::temp_dir dir;
  save(dir.path(), flat_binary{}, 2, 3, 7);
  const auto restored = [&](const std::string& name, const shape& dims, bool random = false) {
    graph g;
    g.variable(name, dims, {.init = constant_initializer(9)});
    g.variable("counter", {}, {.init = constant_initializer(5), .trainable = false, .local = true});
    if (random) g.variable("random_step", {}, {.init = zeros, .trainable = false, .type = int64});
    session s{g};
    detail::restore_variables(s, dir.path(), 1, {});
    CHECK(s.report_uninitialized_variables().empty());
    CHECK(s.variable("counter").as<float>()[0] == 5);
    return s.variable(name).as<float>()[0];
  };
  CHECK(restored("w", {2}) == 2);
  CHECK(restored("u", {}, true) == 3);  // the position of a random stream begins anew
  CHECK_THROWS_WITH_AS(restored("v", {}), doctest::Contains("\"v\""), not_found);
  CHECK_THROWS_WITH_AS(restored("w", {3}), doctest::Contains("\"w\""), invalid_argument);
}

TEST_CASE("a pointer is there while something is at work") {
  int* p = nullptr;
  int what = 3;
  {
    const detail::pointed_to_while at_work(p, &what);
    CHECK(p == &what);
  }
  CHECK(p == nullptr);
}
