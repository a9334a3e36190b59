// The conformance suite checks everything that the library promises of an update rule, for its own rules and for yours.
//
//   for (const auto& failure : gradus::testing::conform(my_rule{.rate = 0.1})) std::puts(failure.c_str());   // none
//
// It needs no test framework: it returns a sentence for each check that fails. It takes a rule, a chain or a multi;
// which checks it makes depends on the rule's form (update/rule.hpp): number by number, after norms of its tensor, or
// whole matrices.
//
//   slots       names are unique, in the rule and in the checkpoint; equal runs have equal bits; nothing is written
//               outside a variable; variables without a gradient, and the order of gradients, change nothing
//   numbers     in float32 and in float64, registers and single numbers give the same bits for every size from 1 to
//               two registers and one; float32 stays close to float64
//   rows        a sparse gradient of all rows is the dense one, bit for bit; duplicates are summed first; rows that are
//               not listed do not change (nor do their slots), or change as by gradient 0, as the rule declares; empty,
//               scalar and missing gradients work
//   state       saved in mid-run and restored into a new updater, it gives the same bits from there on
//   NaN         in one element of a gradient it shows in that element and, for a rule by numbers, in no other, slots
//               included; for other rules it stays within its variable
//   settings    vary<member>(constant{c}) gives the bits of the rule whose member is c, for every line of its
//               settings()
//   wrappers    clips, EMA, SWA, weight decay, lookahead, accumulation, multi, freeze, noise and loss scale around the
//               rule do what the same done by hand around the bare rule does (not for a chain with a global norm)
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include "trial.hpp"
#include "wrapped.hpp"

namespace gradus::inline GRADUS_BUILD::testing {

struct conform_options {
  // These are the extents of the variables. There are two at least: the first of rank 2, with three rows or more, the
  // second with an element.
  std::vector<extents> shapes = {{6, 6}, {9}, {}, {2, 2, 4}};
  int steps = 6;
  double float_tolerance = 2e-3;  // of float32 against float64, and if the order of roundings differs; of 1 or more
  double tolerance = 1e-9;        // of float64 if the order of roundings differs
  bool sparse_is_dense = true;    // false: the rule treats sparse gradients in another way (lars in TensorFlow's form)
  bool nan_shows = true;          // false: an element whose gradient is NaN may stay finite
  bool wrappers = true;           // run the wrappers too
  bool settings = true;           // vary each setting too
};

namespace detail {

// Raises invalid_argument if the checks cannot be made with variables of these extents.
inline void check_shapes(const std::vector<extents>& shapes) {
  const auto expect = [](bool holds, std::string_view expected, const std::string& found) {
    if (!holds) raise(status::invalid_argument, text("conform: expected ", expected, "; got ", found));
  };
  expect(shapes.size() >= 2, "`shapes` of two variables at least", text(shapes.size()));
  for (const extents& dims : shapes)
    for (int i = 0; i < dims.rank; ++i) expect(dims[i] >= 0, "extents of 0 or more in `shapes`", to_text(dims));
  const extents &first = shapes[0], &second = shapes[1];
  expect(first.rank == 2 && first[0] >= 3 && first[1] >= 1,
         "the first of `shapes` to have rank 2, three rows or more (sparse gradients list two of them) and a column",
         to_text(first));
  expect(count(second) >= 1, "the second of `shapes` to have an element", to_text(second));
}

// These checks need only an updater of the rule.
template <class T>
class conformance {
public:
  conformance(std::string rule, const conform_options& options, std::vector<std::string>& failures)
      : rule_(std::move(rule)), options_(options), failures_(failures) {}

  void bare(const make_updater& make) {
    names(make);
    repeats(make);
    leaves_others(make);
    sparse_is_dense(make);
    duplicates(make);
    other_rows(make);
    empty(make);
    resumes(make);
    nan(make);
  }

  // Checks that two updaters, which compute by different means, have the same bits after a few steps, for all sizes
  // from 1 to two registers and one.
  void widths(const make_updater& make, const make_updater& other) {
    constexpr auto width = static_cast<std::int64_t>(gradus::detail::pack<T, fast>::width);
    for (std::int64_t n = 1; n <= 2 * width + 1; ++n) {
      trial<T> x(make(), {{n}, {3, n}}), y(other(), {{n}, {3, n}});
      if (x.of(0).matrix) return;
      for (std::uint64_t i = 0; i < 3; ++i) {
        auto g = x.draw(i);
        if (i == 2) g[1] = {1, {g[1].values.begin(), g[1].values.begin() + 2 * n}, {2, 0}, true};
        x.apply(g), y.apply(g);
      }
      same(x.save(), y.save(), text("registers and single numbers, size ", n));
      for (std::size_t v = 0; v < 2; ++v)
        expect(x.stayed_inside(v), text("nothing is written beside a variable of size ", n));
    }
  }

  // A `by_hand` function gets both trials, the wrapped one and a bare one, and a step's gradients.
  using by_hand = std::function<void(trial<T>&, trial<T>&, const gradients<T>&, int)>;
  // Checks that the variables agree after every step, to the bit or (`exact` false) nearly.
  void wrapped(std::string_view what, const make_updater& wrapper, const make_updater& bare, const by_hand& step,
               bool exact = true) {
    trial<T> x(wrapper(), options_.shapes), y(bare(), options_.shapes);
    for (int i = 0; i < options_.steps; ++i) {
      step(x, y, x.draw(static_cast<std::uint64_t>(i)), i);
      for (std::size_t v = 0; v < x.count(); ++v)
        if (!near(x.values(v), y.values(v), text(what, ", step ", i + 1, ", variable ", x.name(v)),
                  exact ? 0 : inexact()))
          return;  // the first is enough
    }
  }
  // Checks that both have the same bits, state included.
  void alike(std::string_view what, const make_updater& one, const make_updater& other) {
    auto x = start(one), y = start(other);
    run(x, 0, options_.steps), run(y, 0, options_.steps);
    same(x.save(), y.save(), what);
  }
  void expect(bool holds, const std::string& what) {
    if (!holds) failures_.push_back(text(rule_, " (", name_of(dtype_of<T>), "): ", what));
  }
  bool near(std::span<const T> x, std::span<const T> y, const std::string& what, double tolerance) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double a = static_cast<double>(x[i]), b = static_cast<double>(y[i]);
      const double size = std::fabs(b) > 1 ? std::fabs(b) : 1;
      if (tolerance == 0 ? std::memcmp(&x[i], &y[i], sizeof(T)) == 0 : std::fabs(a - b) <= tolerance * size) continue;
      expect(false, text(what, ", element ", i, ": ", a, " for ", b));
      return false;
    }
    return true;
  }

private:
  double inexact() const { return sizeof(T) == 8 ? options_.tolerance : options_.float_tolerance; }
  trial<T> start(const make_updater& make) const { return {make(), options_.shapes}; }
  void run(trial<T>& t, int from, int to) const {
    for (int i = from; i < to; ++i) t.apply(t.draw(static_cast<std::uint64_t>(i)));
  }
  void same(const std::vector<saved_state>& x, const std::vector<saved_state>& y, std::string_view what) {
    const std::string where = first_difference(x, y);
    expect(where.empty(), text(what, ": ", where, " differs"));
  }
  static std::vector<saved_state> of_variable(const std::vector<saved_state>& all, std::string_view name) {
    std::vector<saved_state> some;
    for (const auto& s : all)
      if (belongs_to(s, name)) some.push_back(s);
    return some;
  }

  void names(const make_updater& make) {
    auto t = start(make);
    for (std::size_t v = 0; v < t.count(); ++v) {
      const auto slots = t.updater().slot_names(t.name(v));
      for (std::size_t i = 0; i < slots.size(); ++i) {
        expect(!slots[i].empty(), "a slot has a name");
        for (std::size_t k = 0; k < i; ++k)
          expect(slots[i] != slots[k], text("two slots are called \"", slots[i], "\""));
      }
    }
    t.save();  // raises if two states have one name
  }
  void repeats(const make_updater& make) {
    auto x = start(make), y = start(make);
    run(x, 0, options_.steps);
    for (int i = 0; i < options_.steps; ++i) {
      auto g = y.draw(static_cast<std::uint64_t>(i));
      std::reverse(g.begin(), g.end());
      y.apply(g);
    }
    same(x.save(), y.save(), "the same gradients in another order");
    for (std::size_t v = 0; v < x.count(); ++v) expect(x.stayed_inside(v), "nothing is written beside a variable");
  }
  void leaves_others(const make_updater& make) {
    auto t = start(make);
    run(t, 0, 2);
    const auto before = of_variable(t.save(), t.name(1));
    t.apply({t.draw(2)[0]});
    same(of_variable(t.save(), t.name(1)), before, "a variable without a gradient");
  }

  // Returns the gradient `g` as rows: all of them, from the last to the first.
  static gradient<T> as_rows(const trial<T>& t, const gradient<T>& g) {
    gradient<T> s{g.variable, {}, {}, true};
    const std::size_t width = t.width(g.variable);
    for (std::size_t r = t.rows(g.variable); r-- > 0;) {
      s.rows.push_back(static_cast<std::int32_t>(r));
      const auto from = g.values.begin() + static_cast<std::ptrdiff_t>(r * width);
      s.values.insert(s.values.end(), from, from + static_cast<std::ptrdiff_t>(width));
    }
    return s;
  }
  static gradient<T> some_rows(const trial<T>& t, const gradient<T>& g, const std::vector<std::int32_t>& rows) {
    gradient<T> s{g.variable, {}, rows, true};
    const std::size_t width = t.width(g.variable);
    for (const auto r : rows) {
      const auto from = g.values.begin() + r * static_cast<std::ptrdiff_t>(width);
      s.values.insert(s.values.end(), from, from + static_cast<std::ptrdiff_t>(width));
    }
    return s;
  }

  // Returns two rows of the first variable, the last one first. Row 0 is never one of them.
  static std::vector<std::int32_t> two_rows(const trial<T>& t) {
    const auto last = static_cast<std::int32_t>(t.rows(0)) - 1;
    return {last, last / 2};
  }

  void sparse_is_dense(const make_updater& make) {
    if (!options_.sparse_is_dense) return;
    auto x = start(make), y = start(make);
    for (int i = 0; i < options_.steps; ++i) {
      const auto g = x.draw(static_cast<std::uint64_t>(i));
      auto rows = g;
      for (auto& one : rows)
        if (x.rows(one.variable) != 0) one = as_rows(x, one);
      x.apply(g), y.apply(rows);
    }
    for (std::size_t v = 0; v < x.count(); ++v) {
      const auto how = x.of(v);
      near(x.values(v), y.values(v), text("sparse on all rows against dense, variable ", x.name(v)),
           how.elementwise || how.matrix ? 0 : inexact());
    }
  }
  void duplicates(const make_updater& make) {
    auto x = start(make), y = start(make);
    if (!x.of(0).sums_duplicates) return;
    run(x, 0, 2), run(y, 0, 2);
    const auto g = x.draw(2)[0];
    const auto rows = two_rows(x);
    auto twice = some_rows(x, g, {rows[0], rows[1], rows[0]}), once = some_rows(x, g, rows);
    for (std::size_t k = 0, width = x.width(0); k < width; ++k)
      twice.values[2 * width + k] = T(0.5) * twice.values[k],
                               once.values[k] = twice.values[k] + twice.values[2 * width + k];
    x.apply({twice}), y.apply({once});
    same(x.save(), y.save(), "duplicate rows, summed first");
  }
  void other_rows(const make_updater& make) {
    auto x = start(make), y = start(make);
    const auto how = x.of(0);
    run(x, 0, 2), run(y, 0, 2);
    const auto before = x.save();
    const auto some = some_rows(x, x.draw(2)[0], two_rows(x));
    x.apply({some});
    if (how.every_row) {  // rows that are not listed change as by gradient 0
      if (!how.rest_is_zero || !options_.sparse_is_dense) return;
      gradient<T> dense{0, std::vector<T>(x.size(0), T(0))};
      const std::size_t width = x.width(0);
      for (std::size_t i = 0; i < 2; ++i)
        std::copy_n(some.values.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                    dense.values.begin() + some.rows[i] * static_cast<std::ptrdiff_t>(width));
      y.apply({dense});
      near(x.values(0), y.values(0), "rows that are not listed, as gradient 0", 0);
      return;
    }
    if (how.follows) return;
    const auto after = x.save();
    for (std::size_t s = 0; s < after.size(); ++s) {
      if (!belongs_to(after[s], x.name(0)) || after[s].bytes.size() != x.size(0) * sizeof(T)) continue;
      const std::size_t row = x.width(0) * sizeof(T);
      for (std::size_t r = 0; r < x.rows(0); ++r)
        if (std::cmp_not_equal(r, some.rows[0]) && std::cmp_not_equal(r, some.rows[1]))
          expect(std::memcmp(&after[s].bytes[r * row], &before[s].bytes[r * row], row) == 0,
                 text("row ", r, " of ", after[s].name, ", which is not listed, stays"));
    }
  }
  void empty(const make_updater& make) {
    trial<T> t(make(), {{4, 3}, {0}, {0, 5}, {}});
    run(t, 0, 2);
    const auto before = t.save();
    t.apply({gradient<T>{0, {}, {}, true}});
    const auto how = t.of(0);
    if (!how.every_row && !how.follows)
      same(of_variable(t.save(), t.name(0)), of_variable(before, t.name(0)), "a gradient of no rows");
  }

  void resumes(const make_updater& make) {
    auto x = start(make), y = start(make);
    const int half = options_.steps / 2;
    run(x, 0, half);
    y.restore(x.save());
    same(x.save(), y.save(), "restored in mid-run");
    run(x, half, options_.steps), run(y, half, options_.steps);
    same(x.save(), y.save(), "resumed from a restored state");
  }

  void nan(const make_updater& make) {
    auto x = start(make), y = start(make);
    const auto how = x.of(0);
    const std::size_t at = x.size(0) / 2;
    run(x, 0, 2), run(y, 0, 2);
    auto g = x.draw(2);
    y.apply(g);
    g[0].values[at] = std::numeric_limits<T>::quiet_NaN();
    x.apply(g);
    if (options_.nan_shows) expect(std::isnan(x.values(0)[at]), "a NaN in a gradient shows in the variable");
    run(x, 3, 5), run(y, 3, 5);
    const auto with = x.save(), without = y.save();
    for (std::size_t s = 0; s < with.size(); ++s) {
      const bool own = belongs_to(with[s], x.name(0));
      if (how.global && own) continue;
      if (own && !how.elementwise) continue;
      if (!own) {
        if (how.global) continue;
        expect(with[s].bytes == without[s].bytes, text("a NaN in a gradient of \"a\" leaves ", with[s].name, " alone"));
        continue;
      }
      const std::size_t width = size_of(with[s].type) == 0 ? 1 : size_of(with[s].type);
      for (std::size_t i = 0; (i + 1) * width <= with[s].bytes.size(); ++i)
        if (i != at && std::memcmp(&with[s].bytes[i * width], &without[s].bytes[i * width], width) != 0) {
          expect(false,
                 text("a NaN in element ", at, " of a gradient leaves element ", i, " of ", with[s].name, " alone"));
          break;
        }
    }
  }

  std::string rule_;
  const conform_options& options_;
  std::vector<std::string>& failures_;
};

// Returns a value that this setting accepts and does not have now.
template <class Rule>
double another_value(const setting<Rule>& line, const Rule& rule) {
  for (const double x : {0.5, 0.25, 2.0, 3.0, 1.0, -0.5})
    if (line.takes(x) && line.value(rule) != x) return x;
  return 0;
}
// Compares each setting as a constant schedule with the same value in the rule.
template <class Suite, class Rule>
void check_varied(Suite& suite, const Rule& rule) {
  for (const auto& line : gradus::detail::settings_of<Rule>) {
    const double value = another_value(line, rule);
    const std::string what = text("vary<&rule::", line.name, ">(constant{", value, "})");
    Rule built = rule;
    line.set(built, value);
    if (line.name != "rate") {
      suite.alike(what, maker(rule, varied<Rule, constant>{line, constant{value}}), maker(built));
      continue;
    }
    Rule open = rule;  // the rate has one owner
    open.rate.reset();
    composed as_given{built};
    composed as_varied{open, varied<Rule, constant, true>{line, constant{value}}};
    for (std::int64_t step = 0; step < 3; ++step) {
      const auto x = as_given.template prepare<float>(step), y = as_varied.template prepare<float>(step);
      suite.expect(as_given.rate(step) == as_varied.rate(step) && std::memcmp(&x, &y, sizeof x) == 0, what);
      as_given.finish(step), as_varied.finish(step);
    }
  }
}

// Compares float32 with float64, which draw the same numbers.
inline void compare_types(const std::string& rule, const make_updater& make, const conform_options& options,
                          std::vector<std::string>& failures) {
  trial<float> x(make(), options.shapes);
  trial<double> y(make(), options.shapes);
  for (int i = 0; i < options.steps; ++i)
    x.apply(x.draw(static_cast<std::uint64_t>(i))), y.apply(y.draw(static_cast<std::uint64_t>(i)));
  for (std::size_t v = 0; v < x.count(); ++v)
    for (std::size_t k = 0; k < x.size(v); ++k) {
      const double a = static_cast<double>(x.values(v)[k]), b = y.values(v)[k];
      if (std::fabs(a - b) <= options.float_tolerance * (std::fabs(b) > 1 ? std::fabs(b) : 1)) continue;
      failures.push_back(
          text(rule, ": float32 beside float64, variable ", x.name(v), ", element ", k, ": ", a, " for ", b));
      return;
    }
}

}  // namespace detail

// Returns one sentence for each promise that the rule does not keep. A rule without a rate of its own gets the rate
// 1/16. An error that the rule raises is a sentence as well, and ends the checks of its type. Raises invalid_argument
// for shapes that are too small for the checks.
template <class Rule>
std::vector<std::string> conform(const Rule& given, const conform_options& options = {}) {
  static_assert(policies_fit<update_kinds, Rule>::value);
  detail::check_shapes(options.shapes);
  Rule rule = given;
  if constexpr (
      !requires { Rule::default_rate; } && requires { rule.rate = 0.0625; })
    if (!rule.rate.has_value()) rule.rate = 0.0625;
  std::string name = "the update";
  if constexpr (requires { std::string_view(Rule::name); }) name = Rule::name;
  std::vector<std::string> failures;
  const auto run = [&]<class T>(std::type_identity<T>) {
    detail::conformance<T> suite(name, options, failures);
    const auto bare = detail::maker(rule);
    suite.bare(bare);
    suite.widths(bare, detail::single_maker(rule));
    if constexpr (gradus::detail::has_settings<Rule>)
      if (options.settings) detail::check_varied(suite, rule);
    if constexpr (gradus::detail::count_global_stages<Rule>() == 0)  // otherwise its variables are not independent
      if (options.wrappers) detail::check_wrappers<T>(suite, rule);
  };
  const auto attempt = [&](std::string_view what, const auto& check) {
    try {
      check();
    } catch (const std::exception& e) {
      failures.push_back(text(name, " (", what, ") raises an error: ", e.what()));
    }
  };
  attempt("float32", [&] { run(std::type_identity<float>{}); });
  attempt("float64", [&] { run(std::type_identity<double>{}); });
  attempt("float32 beside float64", [&] { detail::compare_types(name, detail::maker(rule), options, failures); });
  return failures;
}

}  // namespace gradus::testing
