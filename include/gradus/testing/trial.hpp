// A trial holds an updater: any composition of update policies behind one interface, with variables and gradients of
// its own, so that a check is compiled once and runs over all of them (testing/conform.hpp).
#pragma once
#include "../base/build.hpp"

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "../base/random.hpp"
#include "../cpu/linear.hpp"
#include "../cpu/sweeps.hpp"
#include "../run/updater.hpp"

namespace gradus::inline GRADUS_BUILD::testing {

// This describes how an update treats one variable, as its form shows.
struct treatment {
  bool elementwise = true;      // by numbers alone: each element's step depends on that element
  bool matrix = false;          // by the rule on the whole tensor
  bool global = false;          // by norms of other variables too
  bool every_row = false;       // a sparse gradient moves the rows that it does not list
  bool rest_is_zero = true;     // ... as gradient 0 does
  bool sums_duplicates = true;  // before anything else is done to them
  bool follows = false;         // something comes after the rule, on every row
};

// This is an updater of any policies.
class any_updater {
public:
  virtual ~any_updater() = default;
  virtual void track(std::string_view name, const tensor_view& values) = 0;
  virtual void apply(std::span<const named_gradient> gradients) = 0;
  virtual void remembers(state_list& list) = 0;
  virtual std::vector<std::string_view> slot_names(std::string_view variable) = 0;
  virtual treatment of(std::string_view variable, const extents& dims) const = 0;
  virtual double rate() const = 0;
  virtual void pass_step() = 0;  // global_step goes up, nothing else happens
};

namespace detail {

template <class R, std::size_t... I>
consteval bool can_rest(std::index_sequence<I...>) {
  using N = gradus::detail::any_number;
  return requires(const R& r, N x, const typename R::template constants<N>& c, std::array<N, sizeof...(I) + 1>& s) {
    r.rest(x, c, s[I]...);
  };
}

template <class R>
consteval bool clips_single_values() {
  if constexpr (requires { R::raw_parts; })
    return R::raw_parts != 0;
  else
    return false;
}
template <class R>
consteval bool has_followers() {
  if constexpr (requires { R::has_after; })
    return R::has_after;
  else
    return false;
}

// These are the sweeps with numbers of width 1.
template <class A>
struct single_numbers : sweeps<A> {
  using linear_algebra = linear<A>;
  template <class T, class U>
  static void sweep(const U& u, const typename U::template constants<T>& c, T scale, T* theta, const T* g,
                    T* const* mirrors, std::size_t n) {
    gradus::sweep<A, T, U, gradus::detail::lane<T, A>>(u, c, scale, theta, g, mirrors, n);
  }
  template <class T, class U, class Index>
  static void sweep_rows(const U& u, const typename U::template constants<T>& c, T scale, T* theta, T* const* mirrors,
                         std::size_t row_count, std::size_t width, const Index* rows, const T* values, std::size_t n,
                         std::span<std::int32_t> scratch, std::size_t per = 1) {
    gradus::sweep_rows<A, T, U, Index, gradus::detail::lane<T, A>>(u, c, scale, theta, mirrors, row_count, width, rows,
                                                                   values, n, scratch, per);
  }
  template <class T, class U>
  static void follow(const U& u, const typename U::template constants<T>& c, T* theta, T* const* mirrors,
                     std::size_t n) {
    gradus::detail::follow<A, T, U, gradus::detail::lane<T, A>>(u, c, theta, mirrors, n);
  }
  template <std::size_t Stage, class T, class U>
  static void measure(const U& u, const typename U::template constants<T>& c, T scale, const T* theta, const T* g,
                      T* const* mirrors, std::size_t n, double* sums) {
    gradus::measure<Stage, A, T, U, gradus::detail::lane<T, A>>(u, c, scale, theta, g, mirrors, n, sums);
  }
};
// These are the sweeps with registers, and matrices.
template <class A>
struct registers : sweeps<A> {
  using linear_algebra = linear<A>;
};

template <class Device, class... Policies>
class updater_of final : public any_updater {
public:
  explicit updater_of(const Policies&... policies) : updater_(policies...) {}
  void track(std::string_view name, const tensor_view& values) override { updater_.track(name, tensor_view(values)); }
  void apply(std::span<const named_gradient> gradients) override { updater_.apply(gradients); }
  void remembers(state_list& list) override { updater_.remembers(list); }
  std::vector<std::string_view> slot_names(std::string_view variable) override { return updater_.slot_names(variable); }
  double rate() const override { return updater_.rate(); }
  void pass_step() override { updater_.set_global_step(updater_.global_step() + 1); }
  treatment of(std::string_view variable, const extents& dims) const override {
    const auto& update = updater_.update();
    treatment t;
    update.visit(update.branch_of(variable, dims), [&](const auto& single, auto) {
      using rule = typename std::remove_cvref_t<decltype(single)>::rule_type;
      t.matrix = gradus::detail::steps_tensors<rule>;
      t.elementwise = !t.matrix && single.stages == 0;
      t.global = single.global_stages != 0;
      t.every_row = t.matrix || single.decays_all_rows();
      t.rest_is_zero = t.matrix || !can_rest<rule>(std::make_index_sequence<gradus::detail::count_slots<rule>()>{});
      t.sums_duplicates = !clips_single_values<rule>();
      t.follows = has_followers<rule>();
    });
    return t;
  }

private:
  updater<Device, Policies...> updater_;
};

}  // namespace detail

// This is a step's gradient of one variable; `rows` are those of a sparse one.
template <class T>
struct gradient {
  std::size_t variable;
  std::vector<T> values;
  std::vector<std::int32_t> rows;
  bool sparse;
  gradient(std::size_t which, std::vector<T> numbers, std::vector<std::int32_t> of_rows = {}, bool is_sparse = false)
      : variable(which), values(std::move(numbers)), rows(std::move(of_rows)), sparse(is_sparse) {}
};
template <class T>
using gradients = std::vector<gradient<T>>;

// These are bytes under a name, as a checkpoint would hold them.
struct saved_state {
  std::string name;
  dtype type = dtype::none;
  std::vector<std::byte> bytes;
};

// This has variables "a", "b", ... of the given extents, in T, and an updater that holds them. All values are drawn
// from `seed`; float32 and float64 trials draw the same numbers.
template <class T>
class trial {
public:
  static constexpr std::size_t guard = 8;  // elements before and after each variable that must not be written

  trial(std::unique_ptr<any_updater> updater, const std::vector<extents>& shapes, std::uint64_t seed = 1)
      : updater_(std::move(updater)), dims_(shapes), seed_(seed) {
    for (std::size_t v = 0; v < shapes.size(); ++v) {
      names_.push_back(std::string(1, static_cast<char>('a' + v)));
      memory_.emplace_back(size(v) + 2 * guard, untouched);
      random_stream r = stream(0, v);
      for (auto& x : values(v)) x = number(r);
    }
    for (std::size_t v = 0; v < shapes.size(); ++v) updater_->track(names_[v], tensor_view(values(v), dims_[v]));
  }

  std::size_t count() const { return dims_.size(); }
  std::size_t size(std::size_t v) const { return static_cast<std::size_t>(gradus::count(dims_[v])); }
  const extents& dims(std::size_t v) const { return dims_[v]; }
  const std::string& name(std::size_t v) const { return names_[v]; }
  std::size_t rows(std::size_t v) const { return dims_[v].rank == 0 ? 0 : static_cast<std::size_t>(dims_[v][0]); }
  std::size_t width(std::size_t v) const { return rows(v) == 0 ? 0 : size(v) / rows(v); }
  std::span<T> values(std::size_t v) { return std::span<T>(memory_[v]).subspan(guard, size(v)); }
  any_updater& updater() { return *updater_; }
  treatment of(std::size_t v) const { return updater_->of(names_[v], dims_[v]); }

  // Returns dense gradients of all variables in step `step`.
  gradients<T> draw(std::uint64_t step) const {
    gradients<T> all;
    for (std::size_t v = 0; v < count(); ++v) {
      random_stream r = stream(1 + step, v);
      all.push_back({v, std::vector<T>(size(v))});
      for (auto& x : all.back().values) x = number(r);
    }
    return all;
  }
  void apply(const gradients<T>& given) {
    std::vector<named_gradient> named;
    for (const auto& g : given)
      if (g.sparse)
        named.emplace_back(names_[g.variable], indexed_slices{g.rows, g.values});
      else
        named.emplace_back(names_[g.variable], g.values);
    updater_->apply(named);
  }

  std::vector<saved_state> save() {
    state_list list;
    updater_->remembers(list);
    std::vector<saved_state> all;
    for (const auto& e : list.entries()) {
      all.push_back({e.name, e.type, {e.bytes.begin(), e.bytes.end()}});
      if (e.dynamic != nullptr) e.dynamic->save(all.back().bytes);
    }
    return all;
  }
  void restore(const std::vector<saved_state>& all) {
    state_list list;
    updater_->remembers(list);
    for (const auto& s : all) {
      const auto* e = list.find(s.name);
      if (e == nullptr) raise(status::not_found, text("there is no state \"", s.name, "\" any more"));
      if (e->dynamic != nullptr)
        e->dynamic->load(s.bytes);
      else if (!s.bytes.empty())
        std::memcpy(e->bytes.data(), s.bytes.data(), s.bytes.size());
    }
  }
  // Returns the elements of the state `name`; none if there is no such state.
  std::vector<T> state(std::string_view name) {
    state_list list;
    updater_->remembers(list);
    const auto* e = list.find(name);
    if (e == nullptr || e->type != dtype_of<T>) return {};
    std::vector<T> x(e->bytes.size() / sizeof(T));
    if (!x.empty()) std::memcpy(x.data(), e->bytes.data(), e->bytes.size());
    return x;
  }
  // Returns true if a variable's neighbours in memory are unchanged.
  bool stayed_inside(std::size_t v) const {
    for (std::size_t i = 0; i < guard; ++i)
      if (memory_[v][i] != untouched || memory_[v][memory_[v].size() - 1 - i] != untouched) return false;
    return true;
  }

private:
  static constexpr T untouched = T(-77);
  random_stream stream(std::uint64_t step, std::size_t v) const { return {(seed_ << 40) + (step << 8) + v}; }
  static T number(random_stream& r) { return static_cast<T>(static_cast<float>(2 * r.uniform() - 1)); }

  std::unique_ptr<any_updater> updater_;
  std::vector<extents> dims_;
  std::uint64_t seed_;
  std::vector<std::string> names_;
  std::vector<std::vector<T>> memory_;
};

// Returns true if a state belongs to a variable: the variable itself, or one of its slots.
inline bool belongs_to(const saved_state& s, std::string_view variable) {
  return s.name == variable ||
         (s.name.size() > variable.size() && s.name.starts_with(variable) && s.name[variable.size()] == '/');
}

// Returns the first difference, such as "b/Adam, element 3", or an empty string if every bit is the same.
inline std::string first_difference(const std::vector<saved_state>& x, const std::vector<saved_state>& y) {
  if (x.size() != y.size()) return "the number of states";
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i].name != y[i].name) return text("the name of state ", i, ", ", x[i].name, " or ", y[i].name);
    if (x[i].bytes.size() != y[i].bytes.size()) return text("the size of ", x[i].name);
    const std::size_t width = size_of(x[i].type) == 0 ? 1 : size_of(x[i].type);
    for (std::size_t k = 0; k + width <= x[i].bytes.size(); k += width)
      if (std::memcmp(&x[i].bytes[k], &y[i].bytes[k], width) != 0) return text(x[i].name, ", element ", k / width);
  }
  return {};
}

}  // namespace gradus::testing
