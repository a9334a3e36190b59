// Members and a server in one process, for the tests of federated rounds.
#pragma once
#include <gradus/cluster/federated_member.hpp>
#include <gradus/cluster/federated_server.hpp>
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/adam.hpp>

#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <vector>

namespace federated_test {

using octets = std::vector<std::byte>;

template <int Units>
constexpr auto mlp = [](gradus::graph& g) {
  using namespace gradus;
  const auto x = g.placeholder("x", {batch, 3}), y = g.placeholder("y", {batch, 1});
  const auto h = batch_norm(dense(x, {.units = Units, .name = "hidden"}), {.name = "norm"});
  return model_spec{.loss = reduce_mean(squared_difference(dense(tanh(h), {.units = 1, .name = "out"}), y)),
                    .metrics = {},
                    .predictions = {}};
};
template <int Units>
auto trainer_of() {
  return gradus::make_static_stepper<mlp<Units>>(gradus::static_batch<4>{}, gradus::adam{.rate = 0.02},
                                                 gradus::portable{});
}
template <int Units = 5>
struct board {
  using trainer_type = decltype(trainer_of<Units>());
  trainer_type trainer = trainer_of<Units>();
  std::byte room[trainer_type::variable_bytes];
  gradus::federated_member<trainer_type> member;

  explicit board(std::uint16_t number) : member(trainer, number, room) { trainer.initialize(number); }

  void learn(std::uint32_t seed, int steps) {
    std::mt19937 random(seed);
    const auto number = [&] { return static_cast<float>(random() % 2001) / 1000 - 1; };
    for (int i = 0; i < steps; ++i) {
      const auto x = trainer.template input<"x">();
      const auto y = trainer.template input<"y">();
      for (float& v : x) v = number();
      for (std::size_t k = 0; k < y.size(); ++k) y[k] = x[3 * k] - x[3 * k + 1] * x[3 * k + 2];
      trainer.step();
    }
  }
  octets update(std::uint32_t examples) {
    octets out;
    member.send(examples, [&](std::span<const std::byte> piece) { out.insert(out.end(), piece.begin(), piece.end()); });
    return out;
  }
  // Every exchanged number.
  std::vector<float> numbers() {
    std::vector<float> all;
    struct reading {
      std::vector<float>& all;
      void tensor(std::string_view, gradus::dtype type, const gradus::extents&, std::span<std::byte> values) {
        if (type != gradus::float32) return;
        all.resize(all.size() + values.size() / 4);
        std::memcpy(all.data() + all.size() - values.size() / 4, values.data(), values.size());
      }
    } list{all};
    trainer.list_variables(list);
    return all;
  }
};

inline octets copy(std::span<const std::byte> s) { return {s.begin(), s.end()}; }
inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// A frame with another head, whose checksum is right.
template <class Change>
octets forged(octets frame, Change change) {
  gradus::detail::federated_frame f;
  f.read(frame.data());
  change(f);
  f.write(frame.data());
  return frame;
}

}  // namespace federated_test
