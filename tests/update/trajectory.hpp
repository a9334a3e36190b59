// Replays golden trajectories of a rule: through gradus::updater, in float64 (fast arithmetic) and float32 (portable);
// and through the sweep lane by lane, which must give the updater's bits.
#pragma once
#include <doctest/doctest.h>

#include <cstring>
#include <gradus/cpu/math.hpp>
#include <gradus/cpu/sweeps.hpp>
#include <gradus/run/updater.hpp>
#include <memory>
#include <string>

#include "../golden/golden.hpp"

namespace trajectory {

using golden::json;

// Of float32 runs; float64 runs keep each case's own. Their unit is 6e-8, the runs have 5 to 20 steps.
struct tolerance {
  double rtol = 2e-5, atol = 2e-6;
};

// TensorFlow's own facts, whose arrays are nested and whose gradients are those of every step, in the form of a case.
inline void flatten(const json& from, json& to) {
  if (from.is_array())
    for (const auto& x : from) flatten(x, to);
  else
    to.push_back(from);
}
inline json flat(const json& from) {
  json to = json::array();
  flatten(from, to);
  return to;
}
inline json case_of_fact(const json& fact) {
  json c{{"id", fact["id"]}, {"rtol", fact["rtol"]}, {"atol", fact["atol"]}, {"params", fact["params"]}};
  for (const auto& x : fact["init"]) {
    json shape = json::array();
    for (const json* dim = &x; dim->is_array(); dim = &(*dim)[0]) shape.push_back(dim->size());
    c["shapes"].push_back(shape);
    c["init"].push_back(flat(x));
  }
  const auto steps = fact["steps"].get<std::size_t>();
  for (std::size_t step = 0; step < steps; ++step) {
    json grads = json::array();
    for (const auto& g : fact["grads"].is_null() ? fact["grads_per_step"][step] : fact["grads"])
      if (g.is_object())
        grads.push_back({{"indices", g["indices"]}, {"values", flat(g["values"])}});
      else
        grads.push_back({{"dense", flat(g)}});
    c["grads"].push_back(grads);
  }
  json after{{"step", steps}, {"vars", json::array()}};
  for (const auto& x : fact["expect"]) after["vars"].push_back(flat(x));
  if (!fact["expect_slots"].is_null()) after["slots"] = fact["expect_slots"];
  c["after"].push_back(after);
  return c;
}

// ---- the same steps lane by lane, for rules that need nothing first
template <class T, class A, class Rule>
class lanes {
  using update_type = gradus::composed<Rule>;
  using N = gradus::lane<T, A>;
  struct variable {
    std::vector<T> theta;
    std::size_t rows = 1;
    std::vector<std::vector<T>> mirrors;
    std::vector<T*> pointers;
  };

public:
  explicit lanes(const Rule& rule) : update_(rule) {}
  void track(const std::vector<T>& theta, std::size_t rows) {
    auto& v = variables_.emplace_back(std::make_unique<variable>());
    v->theta = theta, v->rows = rows;
    for (const auto& m : single(update_).mirrors())
      v->mirrors.push_back(m.starts_as_variable ? theta : std::vector<T>(theta.size(), static_cast<T>(m.initial)));
    for (auto& m : v->mirrors) v->pointers.push_back(m.data());
    v->pointers.push_back(nullptr);
  }
  void prepare(std::int64_t step) { constants_ = single(update_).template prepare<T>(step); }
  void dense(std::size_t v, const std::vector<T>& g) {
    auto& x = *variables_[v];
    gradus::sweep<A, T, single_type, N>(single(update_), constants_, T(1), x.theta.data(), g.data(), x.pointers.data(),
                                        g.size());
  }
  void sparse(std::size_t v, const std::vector<std::int32_t>& rows, const std::vector<T>& values) {
    auto& x = *variables_[v];
    std::vector<std::int32_t> scratch(gradus::row_chains::scratch(rows.size()));
    gradus::sweep_rows<A, T, single_type, std::int32_t, N>(single(update_), constants_, T(1), x.theta.data(),
                                                           x.pointers.data(), x.rows, x.theta.size() / x.rows,
                                                           rows.data(), values.data(), rows.size(), scratch);
  }
  void observe(std::size_t v, const std::vector<T>& estimate) {
    auto& x = *variables_[v];
    gradus::observe<A, T, single_type, N>(single(update_), constants_, x.theta.data(), estimate.data(),
                                          x.pointers.data(), estimate.size());
  }
  void finish(std::int64_t step) { update_.finish(step); }
  const std::vector<T>& theta(std::size_t v) const { return variables_[v]->theta; }

private:
  static auto& single(update_type& u) { return u.single(); }
  using single_type = std::remove_cvref_t<decltype(single(std::declval<update_type&>()))>;
  update_type update_;
  typename single_type::template constants<T> constants_{};
  std::vector<std::unique_ptr<variable>> variables_;
};
struct no_lanes {};

template <class Rule>
concept takes_observations =
    requires(const Rule& r, double& x, const typename Rule::template constants<double>& c) { r.observe(x, c, x, x); };
template <class Rule>
inline constexpr bool runs_in_lanes = !gradus::detail::has_adapt<Rule> && !gradus::detail::steps_tensors<Rule>;

// ---- one case
template <class T, class A, class Rule>
class run {
public:
  run(const json& c, const Rule& rule, tolerance t)
      : case_(c), id_(c["id"].get<std::string>()), updater_(rule), lanes_(make_lanes(rule)) {
    rtol_ = sizeof(T) == 8 ? c["rtol"].get<double>() : std::max(t.rtol, c["rtol"].get<double>());
    atol_ = sizeof(T) == 8 ? c["atol"].get<double>() : std::max(t.atol, c["atol"].get<double>());
    for (std::size_t v = 0; v < c["init"].size(); ++v) {
      theta_.push_back(std::make_unique<std::vector<T>>(golden::numbers<T>(c["init"][v])));
      gradus::extents dims;
      for (const auto& d : c["shapes"][v]) dims.push(d.get<std::int64_t>());
      updater_.track(
          name(v), gradus::tensor_view{gradus::dtype_of<T>, dims, reinterpret_cast<std::byte*>(theta_.back()->data())});
      if constexpr (runs_in_lanes<Rule>)
        lanes_.track(*theta_.back(), dims.rank == 0 ? 1 : static_cast<std::size_t>(dims[0]));
    }
  }
  void operator()() {
    std::size_t checked = 0;
    for (step_ = 0; step_ < case_["grads"].size(); ++step_) {
      step(case_["grads"][step_]);
      for (const auto& after : case_["after"])
        if (after["step"] == step_ + 1) compare(after), ++checked;
    }
    CHECK(checked == case_["after"].size());
  }

private:
  static auto make_lanes(const Rule& rule) {
    if constexpr (runs_in_lanes<Rule>)
      return lanes<T, A, Rule>(rule);
    else
      return no_lanes{};
  }
  static std::string name(std::size_t v) { return "w" + std::to_string(v); }

  void step(const json& grads) {
    const auto n = static_cast<std::size_t>(grads.size());
    std::vector<std::vector<T>> values(n), estimates(n);
    std::vector<std::vector<std::int32_t>> rows(n);
    std::vector<std::string> names;
    for (std::size_t v = 0; v < n; ++v) names.push_back(name(v));
    std::vector<gradus::named_gradient> given, observed;
    const auto now = static_cast<std::int64_t>(step_);
    if constexpr (runs_in_lanes<Rule>) lanes_.prepare(now);
    for (std::size_t v = 0; v < n; ++v) {
      const json& g = grads[v];
      if (g.is_null()) continue;
      if (g.contains("hess_g")) {
        estimates[v] = golden::numbers<T>(g["hess_g"]);
        observed.emplace_back(names[v], estimates[v]);
      }
      if (g.contains("indices")) {
        rows[v] = g["indices"].get<std::vector<std::int32_t>>();
        values[v] = golden::numbers<T>(g["values"]);
        given.emplace_back(names[v], gradus::indexed_slices{rows[v], values[v]});
      } else {
        values[v] = golden::numbers<T>(g.contains("g") ? g["g"] : g["dense"]);
        given.emplace_back(names[v], values[v]);
      }
      if constexpr (runs_in_lanes<Rule>) {
        if constexpr (takes_observations<Rule>)
          if (!estimates[v].empty()) lanes_.observe(v, estimates[v]);
        if (g.contains("indices"))
          lanes_.sparse(v, rows[v], values[v]);
        else
          lanes_.dense(v, values[v]);
      }
    }
    if constexpr (takes_observations<Rule>)
      for (const auto& estimate : observed) updater_.observe({estimate});
    if (!given.empty()) {  // no gradient at all is an error of apply, as in TensorFlow
      updater_.apply(given);
      if constexpr (runs_in_lanes<Rule>) lanes_.finish(now);
    }
    if constexpr (runs_in_lanes<Rule>)
      for (std::size_t v = 0; v < n; ++v) {
        INFO(id_, " lane by lane, step ", step_ + 1);
        CHECK(std::memcmp(lanes_.theta(v).data(), theta_[v]->data(), theta_[v]->size() * sizeof(T)) == 0);
      }
  }

  void compare(const json& after) {
    for (std::size_t v = 0; v < theta_.size(); ++v) {
      compare(after["vars"][v], *theta_[v], "theta");
      if (!after.contains("slots")) continue;
      for (const auto& [slot, want] : after["slots"][v].items()) {
        const auto view = updater_.slot(name(v), slot);
        const auto* p = reinterpret_cast<const T*>(view.data);
        compare(flat(want), std::vector<T>(p, p + view.size()), slot.c_str());
      }
    }
    if (!after.contains("shared")) return;
    gradus::state_list state;
    updater_.remembers(state);
    for (const auto& [what, want] : after["shared"].items()) {
      const auto* entry = state.find(what);
      if (entry == nullptr && what == "step") entry = state.find("global_step");  // the rule itself does not count
      REQUIRE(entry != nullptr);
      double got = 0;
      std::int64_t whole = 0;
      if (entry->type == gradus::int64)
        std::memcpy(&whole, entry->bytes.data(), sizeof whole), got = static_cast<double>(whole);
      else
        std::memcpy(&got, entry->bytes.data(), sizeof got);
      INFO(id_, " ", what, " step ", step_ + 1, ": ", got, " for ", golden::number(want));
      CHECK(golden::near(got, golden::number(want), case_["rtol"].get<double>(), case_["atol"].get<double>()));
    }
  }
  void compare(const json& want, const std::vector<T>& got, const char* what) {
    REQUIRE(want.size() == got.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO(id_, " ", what, " step ", step_ + 1, " element ", i, ": ", static_cast<double>(got[i]), " for ",
           golden::number(want[i]));
      CHECK(golden::near(static_cast<double>(got[i]), golden::number(want[i]), rtol_, atol_));
    }
  }

  const json& case_;
  std::string id_;
  std::vector<std::unique_ptr<std::vector<T>>> theta_;
  gradus::updater<gradus::sweeps<A>, Rule> updater_;
  decltype(make_lanes(std::declval<const Rule&>())) lanes_;
  double rtol_, atol_;
  std::size_t step_ = 0;
};

// One case through everything.
template <class Rule>
void replay(const json& c, const Rule& rule, tolerance t = {}) {
  run<double, gradus::fast, Rule>(c, rule, t)();
  run<float, gradus::portable, Rule>(c, rule, t)();  // that the two arithmetics agree is testing/conform's to show
}

// f(case) for every case and fact of one optimizer; how many there were.
template <class F>
std::size_t for_cases(std::string_view optimizer, F f) {
  static const json file = golden::read("optimizers.json");
  std::size_t cases = 0;
  for (const auto& c : file) {
    if (c["optimizer"] != optimizer) continue;
    ++cases;
    if (c["kind"] == "optimizer_tf")
      f(case_of_fact(c));
    else
      f(c);
  }
  return cases;
}
// `make` turns a case's parameters into a rule.
template <class Make>
std::size_t replay_all(std::string_view optimizer, Make make, tolerance t = {}) {
  return for_cases(optimizer, [&](const json& c) { replay(c, make(c["params"]), t); });
}

// A parameter of a case, or the rule's own default.
template <class V>
void set(V& setting, const json& params, const char* name) {
  if (params.contains(name)) setting = params[name].template get<V>();
}
inline void set(std::optional<double>& setting, const json& params, const char* name) {
  if (params.contains(name)) setting = params[name].get<double>();
}

// Making an optimizer of this rule is refused with a message that names the setting.
template <class Rule>
void refused(const Rule& rule, const char* setting) {
  try {
    gradus::updater<gradus::sweeps<gradus::fast>, Rule> u{rule};
    FAIL("expected an error about ", setting);
  } catch (const gradus::invalid_argument& e) {
    INFO(e.what());
    CHECK(std::string_view(e.what()).find(setting) != std::string_view::npos);
    CHECK(std::string_view(e.what()).find(Rule::name) != std::string_view::npos);
  }
}

}  // namespace trajectory
