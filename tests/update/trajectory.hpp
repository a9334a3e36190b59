// Replays golden trajectories of a rule through the sweeps: dense and sparse, lane by lane and register by register.
#pragma once
#include <doctest/doctest.h>

#include <gradus/cpu/sweep.hpp>
#include <memory>
#include <string>

#include "../golden/golden.hpp"

namespace trajectory {

using golden::json;

// float32 runs of six steps; its unit is 6e-8.
template <class T>
constexpr double rtol(const json& c) {
  return sizeof(T) == 8 ? c["rtol"].get<double>() : 2e-5;
}
template <class T>
constexpr double atol(const json& c) {
  return sizeof(T) == 8 ? c["atol"].get<double>() : 2e-6;
}

template <class T, class Composed>
struct variable {
  std::vector<T> theta;
  std::size_t rows = 1, width = 1;
  std::vector<std::vector<T>> mirrors;
  T* pointers[Composed::mirror_count + 1] = {};

  variable(const Composed& update, const json& shape, const json& init) : theta(golden::numbers<T>(init)) {
    if (!shape.empty()) rows = shape[0].get<std::size_t>();
    width = theta.size() / rows;
    for (const auto& m : update.mirrors())
      mirrors.push_back(m.starts_as_variable ? theta : std::vector<T>(theta.size(), static_cast<T>(m.initial)));
    for (std::size_t i = 0; i < mirrors.size(); ++i) pointers[i] = mirrors[i].data();
  }
};

template <class T, class N, class Composed>
void replay(const json& c, Composed update) {
  const std::string id = c["id"].get<std::string>();
  std::vector<std::unique_ptr<variable<T, Composed>>> vars;
  for (std::size_t v = 0; v < c["init"].size(); ++v)
    vars.push_back(std::make_unique<variable<T, Composed>>(update, c["shapes"][v], c["init"][v]));
  const auto compare = [&](const json& want, const std::vector<T>& got, const char* what, std::size_t step) {
    REQUIRE(want.size() == got.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO(id, " ", what, " step ", step, " element ", i, ": ", static_cast<double>(got[i]), " for ",
           golden::number(want[i]));
      CHECK(golden::near(static_cast<double>(got[i]), golden::number(want[i]), rtol<T>(c), atol<T>(c)));
    }
  };
  std::int64_t step = 0;
  std::size_t checked = 0;
  for (const auto& grads : c["grads"]) {
    const auto constants = update.template prepare<T>(step);
    for (std::size_t v = 0; v < vars.size(); ++v) {
      auto& x = *vars[v];
      const json& g = grads[v];
      if (g.is_null()) continue;
      if (g.contains("dense")) {
        const auto dense = golden::numbers<T>(g["dense"]);
        gradus::sweep<typename N::policy, T, Composed, N>(update, constants, T(1), x.theta.data(), dense.data(),
                                                          x.pointers, dense.size());
      } else {
        const auto rows = g["indices"].get<std::vector<std::int32_t>>();
        const auto values = golden::numbers<T>(g["values"]);
        std::vector<std::int32_t> scratch(gradus::row_chains::scratch(rows.size()));
        gradus::check_rows(rows.data(), rows.size(), x.rows);
        gradus::sweep_rows<typename N::policy, T, Composed, std::int32_t, N>(update, constants, T(1), x.theta.data(),
                                                                             x.pointers, x.rows, x.width, rows.data(),
                                                                             values.data(), rows.size(), scratch);
      }
    }
    update.finish();
    ++step;
    for (const auto& after : c["after"]) {
      if (after["step"] != step) continue;
      ++checked;
      for (std::size_t v = 0; v < vars.size(); ++v) {
        compare(after["vars"][v], vars[v]->theta, "theta", static_cast<std::size_t>(step));
        if (!after.contains("slots")) continue;
        const auto mirrors = update.mirrors();
        for (std::size_t m = 0; m < mirrors.size(); ++m)
          if (const auto& slots = after["slots"][v]; slots.contains(mirrors[m].slot))
            compare(slots[std::string(mirrors[m].slot)], vars[v]->mirrors[m], "slot", static_cast<std::size_t>(step));
      }
    }
  }
  CHECK(checked == c["after"].size());
}

// All golden cases of one optimizer, in both types, both widths and both arithmetics; `make` turns a case's parameters
// into a composed update.
template <class Make>
std::size_t replay_all(std::string_view optimizer, Make make) {
  static const json file = golden::read("update.json");
  std::size_t cases = 0;
  for (const auto& c : file["optimizer"]) {
    if (c["optimizer"] != optimizer) continue;
    ++cases;
    const auto update = make(c["params"]);
    replay<double, gradus::lane<double, gradus::fast>>(c, update);
    replay<double, gradus::pack<double, gradus::fast>>(c, update);
    replay<double, gradus::pack<double, gradus::portable>>(c, update);
    replay<float, gradus::lane<float, gradus::portable>>(c, update);
    replay<float, gradus::pack<float, gradus::fast>>(c, update);
  }
  return cases;
}

}  // namespace trajectory
