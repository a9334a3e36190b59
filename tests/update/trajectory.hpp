// Replays golden trajectories of a rule: through gradus::updater, in float64 (fast arithmetic) and float32 (portable);
// through the sweep lane by lane, which must give the updater's bits; and in float64 through a graph's optimizer.
#pragma once
#include <doctest/doctest.h>

#include <cstring>
#include <gradus/cpu/device.hpp>
#include <gradus/cpu/math.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/run/session.hpp>
#include <gradus/run/updater.hpp>
#include <memory>
#include <string>

#include "../golden/golden.hpp"
#include "../sanitized.hpp"

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
  using N = gradus::detail::lane<T, A>;
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
    gradus::detail::observe<A, T, single_type, N>(single(update_), constants_, x.theta.data(), estimate.data(),
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

// ---- one case on a graph: a train op for every step, its gradients fed
template <class Rule>
class on_graph {
public:
  on_graph(const json& c, const Rule& rule) : case_(c), id_(c["id"].get<std::string>()), optimizer_(rule) {}
  void operator()() {
    using namespace gradus;
    for (std::size_t v = 0; v < case_["init"].size(); ++v)
      variables_.push_back(graph_.variable(name(v), shape_of(case_["shapes"][v]), {.type = float64}));
    const value steps = graph_.variable("global_step", {}, {.init = zeros, .trainable = false, .type = int64});
    struct fed {
      value rows, values;
    };
    std::vector<std::vector<fed>> feeds;
    std::vector<value> train;
    for (const json& grads : case_["grads"]) {
      auto& own = feeds.emplace_back(variables_.size());
      std::vector<gradient_and_variable> list;
      for (std::size_t v = 0; v < variables_.size(); ++v) {
        const json& g = grads[v];
        if (g.is_null()) continue;
        const std::string at = std::to_string(feeds.size()) + "_" + std::to_string(v);
        shape dims = variables_[v].dims();
        if (g.contains("indices")) {
          dims.dims[0] = static_cast<int>(g["indices"].size());
          own[v].rows = graph_.placeholder("rows" + at, {dims.dims[0]}, int32);
        }
        own[v].values = graph_.placeholder("g" + at, dims, float64);
        gradient_value d{.dense = own[v].values};
        if (own[v].rows) d = {.values = own[v].values, .indices = own[v].rows};
        list.push_back({d, variables_[v]});
      }
      if (list.empty())  // an error of apply_gradients, as in TensorFlow
        train.emplace_back();
      else
        train.push_back(optimizer_.apply_gradients(list, {.global_step = steps}));
    }
    session s{graph_, optimizer_};
    for (std::size_t v = 0; v < variables_.size(); ++v) {
      const auto start = golden::numbers<double>(case_["init"][v]);
      std::copy(start.begin(), start.end(), s.mutable_variable(name(v)).template mutable_as<double>().begin());
    }
    s.initialize();
    std::size_t checked = 0;
    for (std::size_t step = 0; step < train.size(); ++step) {
      const json& grads = case_["grads"][step];
      std::vector<std::vector<double>> values(variables_.size());
      std::vector<std::vector<std::int32_t>> rows(variables_.size());
      std::vector<feed> given;
      for (std::size_t v = 0; v < variables_.size(); ++v) {
        const json& g = grads[v];
        if (g.is_null()) continue;
        values[v] = golden::numbers<double>(g.contains("indices") ? g["values"] : g["dense"]);
        given.emplace_back(feeds[step][v].values, values[v]);
        if (!g.contains("indices")) continue;
        rows[v] = g["indices"].template get<std::vector<std::int32_t>>();
        given.emplace_back(feeds[step][v].rows, rows[v]);
      }
      if (train[step]) {
        const fetch what(train[step]);
        s.run(std::span<const fetch>(&what, 1), given);
      }
      for (const auto& after : case_["after"])
        if (after["step"] == step + 1) compare(s, after, step), ++checked;
    }
    CHECK(checked == case_["after"].size());
  }

private:
  static std::string name(std::size_t v) { return "w" + std::to_string(v); }
  static gradus::shape shape_of(const json& dims) {
    gradus::shape s;
    for (const auto& d : dims) s.push(d.get<int>());
    return s;
  }
  template <class Session>
  void compare(Session& s, const json& after, std::size_t step) {
    for (std::size_t v = 0; v < variables_.size(); ++v) {
      compare(s.variable(name(v)), after["vars"][v], "theta", step);
      if (!after.contains("slots")) continue;
      for (const auto& [slot, want] : after["slots"][v].items())
        compare(s.variable(graph_.name_of(optimizer_.get_slot(variables_[v], slot).id)), flat(want), slot.c_str(),
                step);
    }
  }
  void compare(const gradus::const_tensor_view& got, const json& want, const char* what, std::size_t step) {
    REQUIRE(got.size() == want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double x = reinterpret_cast<const double*>(got.data)[i];
      INFO(id_, " on a graph, ", what, " step ", step + 1, " element ", i, ": ", x, " for ", golden::number(want[i]));
      CHECK(golden::near(x, golden::number(want[i]), case_["rtol"].get<double>(), case_["atol"].get<double>()));
    }
  }

  const json& case_;
  std::string id_;
  gradus::graph graph_;
  gradus::optimizer<gradus::default_device, Rule> optimizer_;
  std::vector<gradus::value> variables_;
};

// Graphs are left out under a sanitizer (run/optimizer runs the same code there); a graph has no second observation.
// One case through everything.
template <class Rule>
void replay(const json& c, const Rule& rule, tolerance t = {}) {
  run<double, gradus::fast, Rule>(c, rule, t)();
  run<float, gradus::portable, Rule>(c, rule, t)();  // that the two arithmetics agree is testing/conform's to show
  if constexpr (!is_sanitized && !takes_observations<Rule>) on_graph<Rule>(c, rule)();
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
