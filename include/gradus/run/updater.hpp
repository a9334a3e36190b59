// Bring your own gradients: the update policies on plain memory, without a graph.
//
//   gradus::updater u{gradus::adam{.rate = 0.01}, gradus::clip_by_global_norm{1.0}};
//   u.track("w", w);                                          // a span, a vector, an xt::xtensor; slots are made here
//   u.apply({{"w", dw}});                                     // dense: as many elements as w
//   u.apply({{"w", gradus::indexed_slices{rows, values}}});   // sparse: values[i] belongs to row rows[i] of w
//   u.slot("w", "m");                                         // a rule's memory, by name
//
// The updater owns slots and averages, never the variables: they must outlive it and must not move. Variables are
// float32 or float64, gradients of the same type. One `apply` is one step of the optimizer over the variables that it
// names; everything is checked before anything is changed, and after the first step nothing is allocated (a sparse
// gradient with more rows than any before it allocates once; `reserve_rows` does it ahead).
#pragma once
#include <deque>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "../tensor/access.hpp"
#include "../update/chain.hpp"
#include "device.hpp"

namespace gradus {

// The gradient of some rows of a variable (tf.IndexedSlices): `rows` is a vector of int32 or int64, in any order and
// with repetitions, `values` is [rows, the variable's other extents] (a flat array of that many elements does too).
struct indexed_slices {
  const_tensor_view rows, values;

  template <readable_array Rows, readable_array Values>
  indexed_slices(const Rows& r, const Values& v) : rows(read_view(r)), values(read_view(v)) {}
};

// "The gradient of `name` is ...": an array or indexed_slices.
struct named_gradient {
  std::string_view name;
  const_tensor_view values;
  const_tensor_view rows;  // of a sparse gradient
  bool sparse = false;

  template <readable_array X>
  named_gradient(std::string_view n, const X& dense) : name(n), values(read_view(dense)) {}
  named_gradient(std::string_view n, const indexed_slices& s) : name(n), values(s.values), rows(s.rows), sparse(true) {}
};

// Device says how memory is swept (gradus::sweeps in cpu/sweep.hpp); the deduction guide binds it to the default one.
template <class Device, class... Policies>
class updater {
public:
  using update_type = composed<Policies...>;

  explicit updater(Policies... policies) : update_(std::move(policies)...) {}
  updater(const updater&) = delete;  // its state list points into it
  updater& operator=(const updater&) = delete;

  // From now on `name` is this array, with its slots at their initial values and its average equal to it.
  template <class X>
  void track(std::string_view name, X&& values) {
    static_assert(
        writable_array<std::remove_reference_t<X>>,
        "gradus: track takes an array that can be written: a span, std::vector, std::array or tensor_view, or "
        "an xt::xtensor or xt::xarray with gradus/tensor/xtensor.hpp included.");
    insert(name, write_view(values));
  }

  // One step. Variables that are not named keep their values, slots and averages.
  void apply(std::initializer_list<named_gradient> gradients) {
    apply(std::span<const named_gradient>(gradients.begin(), gradients.size()));
  }
  void apply(std::span<const named_gradient> gradients) {
    if (gradients.empty())
      raise(status::invalid_argument, "no gradients were given; expected at least one, as {{\"w\", dw}}");
    for (auto& v : variables_) v.gradient = nullptr;
    for (const auto& g : gradients) accept(g);
    double scale = 1;
    if constexpr (update_type::needs_norm) scale = update_.clip_scale(norm_ = global_norm());
    const auto c32 = update_.template prepare<float>(global_step_);
    const auto c64 = update_.template prepare<double>(global_step_);
    for (auto& v : variables_) {
      if (v.gradient == nullptr) continue;
      if (v.values.type == float32)
        step<float>(v, c32, static_cast<float>(scale));
      else
        step<double>(v, c64, scale);
    }
    update_.finish();
    ++global_step_;
  }

  // A slot of the rule, or "average": of the variable's shape and type.
  tensor_view slot(std::string_view variable, std::string_view slot) {
    auto& v = find(variable);
    const auto mirrors = update_.mirrors();
    for (std::size_t i = 0; i < mirrors.size(); ++i)
      if (mirrors[i].slot == slot) return {v.values.type, v.values.dims, v.mirrors[i].data()};
    std::string known;
    for (const auto& m : mirrors) known += text(known.empty() ? "" : ", ", "\"", m.slot, "\"");
    raise(status::not_found, text("there is no slot \"", slot, "\" of \"", variable, "\"; ",
                                  update_type::rule_type::name, known.empty() ? " keeps none" : " keeps ", known));
  }
  tensor_view average(std::string_view variable)
    requires(update_type::has_average)
  {
    return slot(variable, "average");
  }

  std::int64_t global_step() const { return global_step_; }
  void set_global_step(std::int64_t step) { global_step_ = step; }
  // The rate of the next step, and the norm of the last gradients before clipping (0 without a clip).
  double rate() const { return update_.rate(global_step_); }
  double gradient_norm() const { return norm_; }
  const update_type& update() const { return update_; }

  // Makes room for sparse gradients of up to n rows.
  void reserve_rows(std::size_t n) {
    const std::size_t needed = Device::row_scratch(n);
    if (scratch_.size() < needed) scratch_.resize(needed);
  }

  // Variables, their mirrors under TensorFlow's checkpoint names ("w/Adam", "w/Adam_1"), the optimizer's own state and
  // global_step.
  void remembers(state_list& list) {
    const auto mirrors = update_.mirrors();
    for (auto& v : variables_) {
      list.tensor(v.name, v.values.type, v.values.dims, v.values.mutable_bytes());
      for (std::size_t i = 0; i < mirrors.size(); ++i)
        list.tensor(checkpoint_name(v.name, mirrors[i]), v.values.type, v.values.dims,
                    v.mirrors[i].bytes().first(v.values.size_bytes()));
    }
    update_.remembers(list);
    list.scalar("global_step", global_step_);
  }

private:
  struct variable {
    std::string name;
    tensor_view values;
    std::array<buffer, update_type::mirror_count> mirrors;
    const named_gradient* gradient = nullptr;  // of this step
    std::size_t row_count() const { return values.dims.rank == 0 ? 0 : static_cast<std::size_t>(values.dims[0]); }
    std::size_t width() const { return row_count() == 0 ? 0 : values.size() / row_count(); }
  };

  void insert(std::string_view name, const tensor_view& values) {
    if (name.empty()) raise(status::invalid_argument, "a variable needs a name that is not empty");
    for (const auto& v : variables_)
      if (v.name == name)
        raise(status::already_exists, text("\"", name, "\" is tracked already; give the second variable another name"));
    if (!is_float(values.type))
      raise(status::invalid_argument,
            text("expected float32 or float64 for \"", name, "\", found ", name_of(values.type)));
    variable v{std::string(name), values, {}, nullptr};
    const auto mirrors = update_.mirrors();
    for (std::size_t i = 0; i < mirrors.size(); ++i) {
      v.mirrors[i] = buffer(values.size_bytes());
      if (mirrors[i].starts_as_variable) {
        if (values.size_bytes() != 0) std::memcpy(v.mirrors[i].data(), values.data, values.size_bytes());
      } else if (values.type == float32) {
        fill<float>(v.mirrors[i], mirrors[i].initial);
      } else {
        fill<double>(v.mirrors[i], mirrors[i].initial);
      }
    }
    variables_.push_back(std::move(v));
  }
  template <class T>
  static void fill(buffer& b, double value) {
    T* const p = reinterpret_cast<T*>(b.data());
    for (std::size_t i = 0; i < b.size() / sizeof(T); ++i) p[i] = static_cast<T>(value);
  }

  variable& find(std::string_view name) {
    for (auto& v : variables_)
      if (v.name == name) return v;
    std::string known;
    for (const auto& v : variables_) known += text(known.empty() ? "" : ", ", "\"", v.name, "\"");
    raise(status::not_found, text("no variable is tracked as \"", name,
                                  "\"; tracked: ", known.empty() ? "none, call track first" : known));
  }

  // Checks a gradient against its variable and takes it for this step.
  void accept(const named_gradient& g) {
    variable& v = find(g.name);
    if (v.gradient != nullptr)
      raise(status::invalid_argument,
            text("two gradients for \"", g.name, "\" in one step; expected one, add them first"));
    if (g.values.type != v.values.type)
      raise(status::invalid_argument, text("the gradient of \"", g.name, "\" is ", name_of(g.values.type),
                                           "; expected ", name_of(v.values.type), ", as the variable"));
    if (g.sparse) {
      accept_rows(g, v);
    } else if (g.values.size() != v.values.size() ||
               (g.values.dims.rank > 1 && v.values.dims.rank > 1 && g.values.dims != v.values.dims)) {
      raise(status::invalid_argument, text("the gradient of \"", g.name, "\" is ", to_text(g.values.dims),
                                           "; expected ", to_text(v.values.dims), ", as the variable"));
    }
    v.gradient = &g;
  }
  void accept_rows(const named_gradient& g, const variable& v) {
    if (v.values.dims.rank == 0)
      raise(status::invalid_argument, text("\"", g.name, "\" is a scalar and has no rows; give a dense gradient"));
    if (g.rows.type != int32 && g.rows.type != int64)
      raise(status::invalid_argument,
            text("the row numbers for \"", g.name, "\" are ", name_of(g.rows.type), "; expected int32 or int64"));
    if (g.rows.dims.rank != 1)
      raise(status::invalid_argument,
            text("the row numbers for \"", g.name, "\" are ", to_text(g.rows.dims), "; expected a vector"));
    const std::size_t n = g.rows.size();
    bool fits = g.values.size() == n * v.width();
    if (g.values.dims.rank > 1) {
      fits = fits && g.values.dims.rank == v.values.dims.rank && g.values.dims[0] == static_cast<std::int64_t>(n);
      for (int i = 1; fits && i < v.values.dims.rank; ++i) fits = g.values.dims[i] == v.values.dims[i];
    }
    if (!fits) {
      extents expected = v.values.dims;
      expected.dims[0] = static_cast<std::int64_t>(n);
      raise(status::invalid_argument, text("the values for ", n, " rows of \"", g.name, "\" are ",
                                           to_text(g.values.dims), "; expected ", to_text(expected)));
    }
    if (g.rows.type == int32)
      Device::check_rows(g.rows.template as<std::int32_t>().data(), n, v.row_count());
    else
      Device::check_rows(g.rows.template as<std::int64_t>().data(), n, v.row_count());
    reserve_rows(n);
  }

  // Variables in the order of tracking, so that the order of the gradients does not matter.
  double global_norm() const {
    double total = 0;
    for (const auto& v : variables_) {
      if (v.gradient == nullptr) continue;
      const auto& x = v.gradient->values;
      total += x.type == float32 ? static_cast<double>(Device::sum_of_squares(x.template as<float>().data(), x.size()))
                                 : Device::sum_of_squares(x.template as<double>().data(), x.size());
    }
    return std::sqrt(total);
  }

  template <class T>
  void step(variable& v, const typename update_type::template constants<T>& c, T scale) {
    T* const theta = v.values.template mutable_as<T>().data();
    std::array<T*, update_type::mirror_count + 1> mirrors{};
    for (std::size_t i = 0; i < update_type::mirror_count; ++i) mirrors[i] = reinterpret_cast<T*>(v.mirrors[i].data());
    const named_gradient& g = *v.gradient;
    const T* const values = g.values.template as<T>().data();
    if (!g.sparse) {
      Device::sweep(update_, c, scale, theta, values, mirrors.data(), v.values.size());
      return;
    }
    const auto rows = [&](auto* index) {
      Device::sweep_rows(update_, c, scale, theta, mirrors.data(), v.row_count(), v.width(), index, values,
                         g.rows.size(), std::span<std::int32_t>(scratch_));
    };
    if (g.rows.type == int32)
      rows(g.rows.template as<std::int32_t>().data());
    else
      rows(g.rows.template as<std::int64_t>().data());
    if constexpr (update_type::has_average)
      Device::follow(update_, c, theta, mirrors[update_type::slot_count], v.values.size());
  }

  update_type update_;
  std::deque<variable> variables_;  // a deque: the state list may point at a variable while others are added
  std::vector<std::int32_t> scratch_;
  std::int64_t global_step_ = 0;
  double norm_ = 0;
};

template <class... Policies>
updater(Policies...) -> updater<default_device, Policies...>;

}  // namespace gradus
