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

TEST_CASE("a checkpoint that was copied over the newest one is refused wherever the newest is asked for") {
  testing::temp_dir dir;
  save(dir.path(), flat_binary{}, 1, 1, 110), save(dir.path(), flat_binary{}, 2, 2, 120);
  const std::string path = latest_checkpoint(posix{}, dir.path());
  const auto copy_to = [&](const std::string& to) {
    const auto bytes = read_file(posix{}, dir.path() + "/model-110.ckpt");
    publish(posix{}, to, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  };
  copy_to(path), copy_to(dir.path() + "/best.ckpt"), copy_to(dir.path() + "/model-7.ckpt");
  const auto refused = [](auto f) {
    CHECK_THROWS_WITH_AS(f(), doctest::Contains("its name says step 120, but the checkpoint in it says step 110"),
                         data_loss);
  };
  graph g;
  g.variable("w", {2}, {.init = constant_initializer(5)});
  session s{g};
  refused([&] { detail::variables_in(path, {}); });
  refused([&] { detail::variable_in(path, "w", {}); });
  refused([&] { detail::tensors_in(path, {}); });
  refused([&] { detail::restore_variables(s, path, 1, {}); });
  for (const char* name : {"/best.ckpt", "/model-7.ckpt", "/model-110.ckpt"}) {
    CHECK(detail::variable_in(dir.path() + name, "w", {}).as<float>()[1] == 1);
    detail::restore_variables(s, dir.path() + name, 1, {});
    CHECK(s.variable("w").as<float>()[0] == 1);
  }
}

TEST_CASE("a tensor of a type that is only carried is refused by its name, and its neighbours are read") {
  testing::temp_dir dir;
  const std::string path = dir.path() + "/other.safetensors";
  const std::string header = R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                             R"("z":{"dtype":"C64","shape":[1],"data_offsets":[4,12]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  publish(posix{}, path, file + header + std::string(12, '\0'));
  CHECK(detail::variables_in(path, {}) == std::vector<std::string>{"w", "z"});
  CHECK(detail::variable_in(path, "w", {}).as<float>()[0] == 0);
  CHECK_THROWS_WITH_AS(detail::variable_in(path, "z", {}), doctest::Contains("\"z\" in the checkpoint"),
                       invalid_argument);
  CHECK_THROWS_WITH_AS(detail::variable_in(path, "z", {}), doctest::Contains("complex64"), invalid_argument);
  const auto all = detail::tensors_in(path, {});
  REQUIRE(all.size() == 1);
  CHECK(all[0].first == "w");
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

TEST_CASE("pointers are listed while something is at work, in any order of their ends") {
  std::vector<int*> at_work;
  int outer = 1, inner = 2, late = 3;
  auto first = std::make_unique<detail::listed_while<int>>(at_work, &outer);
  {
    const detail::listed_while second(at_work, &inner);
    CHECK(at_work == std::vector<int*>{&outer, &inner});
    first.reset();  // a range of predictions that ends within a call made later
    CHECK(at_work == std::vector<int*>{&inner});
    first = std::make_unique<detail::listed_while<int>>(at_work, &late);
  }
  CHECK(at_work == std::vector<int*>{&late});
  first.reset();
  CHECK(at_work.empty());
}
