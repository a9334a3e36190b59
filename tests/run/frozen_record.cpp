#include <gradus/codec/flash_image.hpp>
#include <gradus/cpu/frozen.hpp>
#include <gradus/gradus.hpp>
#include <gradus/run/frozen_record.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/store/flash.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/predictor.hpp>

#include <doctest/doctest.h>

using namespace gradus;

namespace {
frozen_dense_weights<3, 4> below{}, other{};
constexpr auto head = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 3}), y = g.placeholder("y", {batch, 1});
  const auto h = dense(frozen_dense<below>(x), {.units = 1, .name = "head"});
  return model_spec{.loss = reduce_mean(squared_difference(h, y)), .metrics = {}, .predictions = {{"h", h}}};
};
}  // namespace

TEST_CASE("each code, scale and bias of each layer counts, and the order of layers does not") {
  static constexpr auto both = [](bool turned) {
    graph g;
    const value x = g.placeholder("x", {batch, 3});
    const value a = turned ? frozen_dense<other>(x) : frozen_dense<below>(x);
    const value b = turned ? frozen_dense<below>(x) : frozen_dense<other>(x);
    add(a, b), frozen_dense<below>(x + x);
    detail::frozen_record r;
    r.find(g.view());
    std::vector<std::byte> bytes;
    r.save(bytes);
    r.load(bytes);
    return bytes;
  };
  other.codes[3] = 7;
  std::vector<std::vector<std::byte>> seen{both(false)};
  CHECK(both(true) == seen[0]);
  const auto differs = [&] {
    seen.push_back(both(false));
    for (std::size_t i = 0; i + 1 < seen.size(); ++i) CHECK(seen[i] != seen.back());
  };
  below.codes[11] = -1, differs();
  other.scales[3] = 0.5f, differs();
  other.bias[0] = 1, differs();
}

TEST_CASE("a head does not go on above other weights") {
  const testing::temp_dir dir;
  const std::vector<float> x{1, 2, 3, 4, 5, 6}, y{1, 2};
  const auto data = [&] { return from_spans("x", x, extents{3}, "y", y, extents{1}).repeat().batch(2); };
  const auto train = [&](std::int64_t steps) {
    auto t = make_trainer<head>(gradient_descent{.rate = 0.01},
                                run_config{.model_dir = dir.path(), .save_summary_steps = 0});
    t.train(data(), {.max_steps = steps});
    return t.steps().global_step();
  };
  for (auto& s : below.scales) s = 0.25f;
  train(3);
  CHECK(train(5) == 5);
  const auto refused = [](auto f) {
    try {
      f();
    } catch (const error& e) {
      return std::string(e.what()).find("above other frozen weights than this program has") != std::string::npos;
    }
    return false;
  };
  below.scales[2] = 0.125f;
  CHECK(refused([&] { train(7); }));
  CHECK(refused([&] { predictor<head>({.model_dir = dir.path()}); }));
  below.scales[2] = 0.25f;
  CHECK(train(7) == 7);
  CHECK(predictor<head>({.model_dir = dir.path()}).global_step() == 7);
}

TEST_CASE("nor does a session's") {
  const testing::temp_dir dir;
  for (auto& s : below.scales) s = 0.25f;
  const auto with_session = [&](auto f) {
    graph g;
    const value x = g.placeholder("x", {batch, 3});
    dense(frozen_dense<below>(x), {.units = 1, .name = "head"});
    session s{g, frozen_ops<below>{}};
    s.initialize(1);
    state_list list;
    s.remembers(list);
    f(list);
  };
  with_session([&](const state_list& list) { saver<>().save(list, dir / "model", 0); });
  with_session([&](const state_list& list) { CHECK(saver<>().restore_latest(list, dir.path())); });
  below.codes[2] = 9;
  with_session(
      [&](const state_list& list) { CHECK_THROWS_AS((void)saver<>().restore_latest(list, dir.path()), data_loss); });
}

namespace {
struct memory_flash {
  static constexpr std::uint32_t sector_bytes = 256, sectors = 8;
  std::vector<std::byte>* cells;
  bool erase(std::uint32_t s) {
    std::fill_n(cells->begin() + s * sector_bytes, sector_bytes, std::byte{0xFF});
    return true;
  }
  bool program(std::uint32_t at, std::span<const std::byte, 32> line) {
    std::copy(line.begin(), line.end(), cells->begin() + at);
    return true;
  }
  bool read(std::uint32_t at, std::span<std::byte> to) {
    std::copy_n(cells->begin() + at, to.size(), to.begin());
    return true;
  }
};
std::vector<std::byte> erased() { return std::vector<std::byte>(256 * 8, std::byte{0xFF}); }
template <class Stepper>
flash_status opened(Stepper& s, std::vector<std::byte>& cells) {
  flash_store store(memory_flash{&cells});
  return store.open(s);
}
}  // namespace

TEST_CASE("nor does a static stepper's, from a flash or from a checkpoint") {
  const auto make = [] {
    using type = decltype(make_static_stepper<head>(static_batch<1>{}, gradient_descent{.rate = 0.1}));
    return std::make_unique<type>(static_batch<1>{}, gradient_descent{.rate = 0.1});
  };
  below = {}, below.scales[1] = 0.5f;
  auto one = make();
  one->initialize(3), one->step();
  auto cells = erased();
  {
    flash_store store(memory_flash{&cells});
    CHECK(store.open(*one) == flash_status::empty);
    CHECK(store.save(*one) == flash_status::ok);
  }
  const testing::temp_dir dir;
  state_list list;
  one->remembers(list);
  saver<>().save(list, dir / "model", 1);
  // Every weight of the body counts, and a refusal changes nothing.
  const auto fares = [&](bool is_same) {
    auto next = make();
    next->initialize(9);
    const float before = next->variable<"head/kernel">()[0];
    CHECK(opened(*next, cells) == (is_same ? flash_status::ok : flash_status::another_model));
    CHECK(next->global_step() == (is_same ? 1 : 0));
    CHECK((next->variable<"head/kernel">()[0] == before) == !is_same);
    state_list into;
    next->remembers(into);
    if (is_same)
      CHECK(saver<>().restore_latest(into, dir.path()));
    else
      CHECK_THROWS_WITH_AS((void)saver<>().restore_latest(into, dir.path()),
                           doctest::Contains("above other frozen weights"), data_loss);
  };
  fares(true);
  below.codes[2] = 3, fares(false), below.codes[2] = 0;
  below.scales[0] = 2, fares(false), below.scales[0] = 0;
  below.bias[3] = 1, fares(false), below.bias[3] = 0;
  fares(true);
}

TEST_CASE("a checkpoint of a server becomes a board's flash with the record of the body, and the other way round") {
  below = {}, below.scales[1] = 0.5f;
  auto trainer = make_trainer<head>(gradient_descent{.rate = 0.1});
  auto& server = trainer.steps();
  server.initialize(4);
  const auto snapshot_of = [](auto& s, std::vector<std::vector<std::byte>>& blobs) {
    state_list list;
    s.remembers(list);
    blobs.reserve(list.entries().size());
    snapshot content;
    for (const state_entry& e : list.entries())
      if (e.dynamic != nullptr) {
        e.dynamic->save(blobs.emplace_back());
        content.records.push_back(
            {e.name, uint8, {static_cast<std::int64_t>(blobs.back().size())}, blobs.back(), true});
      } else {
        content.records.push_back({e.name, e.type, e.dims, e.bytes, false});
      }
    return content;
  };
  std::vector<std::vector<std::byte>> blobs;
  auto image = write_flash_image(snapshot_of(server, blobs), {.sector_bytes = 256, .sectors = 8});
  static auto board = make_static_stepper<head>(static_batch<1>{}, gradient_descent{.rate = 0.1});
  CHECK(opened(board, image) == flash_status::ok);
  CHECK(board.variable<"head/kernel">()[0] != 0);
  // The dump of the board is a checkpoint that the server checks as its own.
  auto cells = erased();
  flash_store store(memory_flash{&cells});
  CHECK(store.open(board) == flash_status::empty);
  CHECK(store.save(board) == flash_status::ok);
  const decoded back = read_flash_image(cells);
  REQUIRE(back.problem == "");
  CHECK(back.content.records.back().name == "frozen_weights");
  CHECK(back.content.records.back().blob);
  const testing::temp_dir dir;
  saver<>().save(back.content, dir / "model");
  state_list of_server;
  server.remembers(of_server);
  CHECK(saver<>().restore_latest(of_server, dir.path()));
  below.codes[0] = 9;
  CHECK(opened(board, image) == flash_status::another_model);
  CHECK(opened(board, cells) == flash_status::another_model);
  CHECK_THROWS_AS((void)saver<>().restore_latest(of_server, dir.path()), data_loss);
}
