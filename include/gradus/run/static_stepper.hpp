// A static stepper makes one step as straight-line code over one array. run/static_step.hpp is its public header.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "../base/subnormals.hpp"
#include "frozen_record.hpp"
#include "mirrors.hpp"
#include "static_examples.hpp"
#include "static_layout.hpp"
#include "static_norm.hpp"
#include "static_start.hpp"
#include "update_step.hpp"

namespace gradus::inline GRADUS_BUILD {

// make_static_stepper makes this class, and refuses arguments that do not fit. They are a model function, a device, and
// policies: static_batch<N>, a rule, and optionally a schedule, a clip, an average, a loss scale, a gate and others
// (docs/policies.md). The object is not copied or moved; as a global it takes none of the program's image.
template <auto Build, class Device, class... Policies>
class static_stepper {
  using update_type = detail::update_among<Policies...>;
  using device = detail::device_among<Device, Policies...>;
  static constexpr subnormal_mode subnormals_here = detail::subnormals_of<device, Policies...>();

public:
  static constexpr std::int64_t batch_size = policy_of<kind::memory, static_batch<1>, Policies...>::size;

private:
  using train = detail::placed_graph<frozen_model<Build, detail::static_options<mode::train, Policies...>>>;
  using forward = detail::placed_graph<frozen_model<Build, detail::static_options<mode::predict, Policies...>>>;
  static constexpr bool one_by_one = detail::is_one_by_one<Policies...>;
  static constexpr std::int64_t call_size = one_by_one ? 1 : batch_size;  // examples of a call
  static constexpr auto layout = detail::lay_out<train, forward, device, update_type>(
      batch_size, {one_by_one, detail::releases<Policies...>, detail::stored_slot_type<Policies...>});
  static constexpr dtype slot_type = layout.stored.type;
  static constexpr auto kept = detail::kept_variables<train>(layout);
  static constexpr std::size_t longest_name = detail::longest_mirror_name<update_type>(kept);

public:
  // These are the bytes of all tensors: variables, gradients, slots, inputs, and the larger of a step's and a
  // prediction's.
  static constexpr std::size_t memory_bytes = layout.bytes;
  static constexpr static_memory memory_parts = layout.parts(update_type::mirror_count);
  static constexpr bool computes_from_slots = update_type::computes_from_slots;  // variables, as ftrl does
  // restart_copies would restart an average too.
  static constexpr bool restarts_average = update_type::weighs_copies && update_type::first_type::has_average;
  static constexpr std::size_t variable_bytes = detail::float_bytes(kept);  // of float32; 0 if there are others

  [[gnu::always_inline]] explicit static_stepper(Policies... policies)
      : step_(detail::compose_update(policies...)),
        storage_(take_policy<kind::slot_storage, detail::float_slots>(policies...)) {
    std::memset(memory_, 0, sizeof memory_);
    detail::fill_constants<train, layout, call_size>(memory_),
        detail::fill_constants<forward, layout, call_size>(memory_);
    if constexpr (!update_type::uniform)
      for (std::size_t i = 0; i < kept.size(); ++i)
        if (kept[i].trainable) states_.of[i] = {step_.update, kept[i].name, resolve(kept[i].dims, 1)};
    detail::check_masks(step_.update, [](auto f) {
      for (const auto& v : kept)
        if (v.trainable) f(v.name, resolve(v.dims, 1));
    });
  }
  static_stepper(const static_stepper&) = delete;
  static_stepper& operator=(const static_stepper&) = delete;

  // Starts every variable by its initializer, drawn from (seed, name), and the optimizer's slots, at step 0.
  void initialize(std::uint64_t seed) {
    detail::start_variables<train, train, device, layout>(memory_, seed);
    detail::start_variables<forward, train, device, layout>(memory_, seed);
    if constexpr (constexpr int v = train::find_variable("random_seed"); v >= 0)
      *at<std::int64_t>(layout.variable[v]) = static_cast<std::int64_t>(seed);
    step_.global_step = 0;
    restart_mirrors();
    ready_ = true;
    detail::count_steps<train, layout>(memory_, step_.global_step);
  }

  // ---- a step
  // Returns the memory of a placeholder. It keeps what is written there, for steps and predictions alike.
  template <name_literal Name>
  auto input() {
    constexpr int id = train::find_placeholder(Name);
    static_assert(id >= 0, "gradus: the model has no placeholder of this name.");
    return examples<train, std::max(id, 0), layout.input_begin(std::max(id, 0))>();
  }
  // Makes one training step on the inputs' values.
  void step() {
    if (!ready_) detail::variables_not_ready();
    const subnormal_scope numbers(subnormals_here);
    step_.begin();
    if constexpr (one_by_one) {
      for (example_.now = 0; example_.now < batch_size; ++example_.now) {
        draw_as(step_.global_step * batch_size + static_cast<std::int64_t>(example_.now));
        run<train>();
        example_.add_outputs(memory_);
      }
      example_.average(memory_);
      update_all();
    } else {
      draw_as(step_.global_step);
      run<train>();
    }
    loss_ = *tensor<train, loss_id>().data();
    step_.finish();
    detail::count_steps<train, layout>(memory_, step_.global_step);
  }
  // Returns the loss of the last step, before its update.
  auto loss() const { return loss_; }
  // Returns a metric of the last step's batch; it is valid until the next prediction.
  template <name_literal Name>
  auto metric() {
    constexpr int id = train::find_output(output::metric, Name);
    static_assert(id >= 0, "gradus: the model has no metric of this name.");
    return *tensor<train, std::max(id, 0)>().data();
  }

  // ---- predictions
  void predict() {
    if (!ready_) detail::variables_not_ready();
    const subnormal_scope numbers(subnormals_here);
    if constexpr (one_by_one)
      for (example_.now = 0; example_.now < batch_size; ++example_.now)
        run<forward>(), example_.keep_predictions(memory_);
    else
      run<forward>();
  }
  // Returns a result of the last predict, a span of constants; it is valid until the next step. With one_by_one, a
  // result that does not have a number for each example is the last example's.
  template <name_literal Name>
  auto prediction() {
    constexpr int number = forward::output_number(output::prediction, Name);
    static_assert(number >= 0, "gradus: the model has no prediction of this name.");
    constexpr int id = forward::graph.outputs[std::max(number, 0)].node;
    constexpr bool each = one_by_one && is_batched(forward::graph.nodes[id].dims);
    const auto values = examples < forward, id,
               each ? layout.prediction[std::max(number, 0)] : layout.template offset<forward>(id) > ();
    return std::span<const typename decltype(values)::value_type, values.extent>(values);
  }
  template <name_literal Name>
  auto predict() {
    return predict(), prediction<Name>();
  }
  // Exchanges the variables with the averages. A second call exchanges them back, with the same bits.
  void swap_averages()
    requires(update_type::has_evaluation_copy)
  {
    for (const auto& v : kept)
      if (v.trainable)
        detail::swap_evaluation_copy(step_.update, branch_of(v), v.name, resolve(v.dims, 1),
                                     std::span(memory_ + v.offset, v.bytes),
                                     [&](std::size_t k) { return memory_ + layout.mirror(k, v.offset); });
  }

  // ---- state
  template <name_literal Name>
  auto variable() {
    constexpr int v = train::find_variable(Name);
    static_assert(v >= 0, "gradus: the model has no variable of this name.");
    return tensor<train, train::program.variables[std::max(v, 0)]>();
  }
  std::int64_t global_step() const { return step_.global_step; }
  double rate() const { return step_.update.rate(step_.global_step); }
  // Passes the loss, or a metric, to a schedule that observes one: reduce_on_plateau.
  void watch(double value) { step_.update.watch(value); }
  // Returns whether the last step's update was left out, and how many were (update/not_finite.hpp).
  bool skipped() const { return step_.update.skips(); }
  std::int64_t skipped_steps() const { return step_.update.skipped_steps(); }
  const update_type& optimizer() const { return step_.update; }

  // Lists everything that a resumed run needs, under the names of a checkpoint, in a fixed order. A list has
  //   void tensor(std::string_view name, dtype, const extents&, std::span<std::byte>);
  //   template <class T> void scalar(std::string_view name, T&);
  // and is a state_list, or writes to flash. Names live for the call, bytes and scalars as long as this object.
  template <class List>
  void remembers(List& list) {
    list.scalar("global_step", step_.global_step);
    for (const auto& v : kept) {
      if (v.local) continue;
      const extents dims = resolve(v.dims, 1);
      const std::span values(memory_ + v.offset, v.bytes);
      if (!v.trainable) {
        list.tensor(v.name, v.type, dims, values);
        continue;
      }
      detail::remember_variable<layout.stored.count>(
          list, step_.update, branch_of(v), v.name, v.type, dims, values,
          [&](std::size_t k) { return memory_ + layout.mirror(k, v.offset); },
          [&](const mirror& m, auto... part) { return detail::mirror_name<longest_name>(v.name, m, part...); },
          [&](std::size_t k, const auto&... of) { detail::remember_slot<slot_type>(list, slot_at(k, v), of...); });
    }
    step_.update.remembers(list);
    detail::static_frozen_record<train>::list_in(list);
  }
  // Lists the variables alone, which programs of one model exchange (cluster/federated_member.hpp).
  template <class List>
  void list_variables(List& list) {
    for (const auto& v : kept)
      if (!v.local) list.tensor(v.name, v.type, resolve(v.dims, 1), std::span(memory_ + v.offset, v.bytes));
  }
  // Call this after a restore: nothing is left to initialize.
  void restored() {
    ready_ = true;
    detail::count_steps<train, layout>(memory_, step_.global_step);
  }
  bool initialized() const { return ready_; }
  // Restarts slots and averages from the variables' present values.
  void restart_mirrors() {
    for (const auto& v : kept) v.trainable ? start_mirrors(v) : void();
    step_.update.restart();
    step_.update.stay_at(0, step_.global_step);
  }
  // Call this when all variables were replaced while training goes on, as federated rounds do: slots that are copies of
  // the variables begin anew as such, since the next steps would return to the values of before. The other slots stay,
  // and so does an average, which only follows the variables. A rule that weighs its copies (schedule_free_adamw)
  // begins anew as a whole.
  void restart_copies() {
    if constexpr (update_type::weighs_copies) {
      restart_mirrors();
    } else if constexpr (update_type::copies_variables) {
      for (const auto& v : kept)
        if (v.trainable)
          detail::each_mirror(step_.update, branch_of(v), resolve(v.dims, 1),
                              [&](std::size_t k, const mirror& m, const extents&) {
                                if (m.starts_as_variable && k != step_.update.evaluation_mirror(branch_of(v)))
                                  std::memcpy(memory_ + layout.mirror(k, v.offset), memory_ + v.offset, v.bytes);
                              });
    }
  }

private:
  static constexpr int loss_id = train::find_output(output::loss, "loss");
  using loss_type = element_t<train::graph.nodes[loss_id].type>;

  update_step<update_type, train::template trains<float>(), train::template trains<double>()> step_;
  [[no_unique_address]] subject_states<update_type, kept.size()> states_{};
  [[no_unique_address]] std::conditional_t<
      one_by_one, detail::static_examples<train, forward, layout, batch_size, !update_type::settles>,
      detail::whole_static_batch>
      example_{};
  [[no_unique_address]] policy_of<kind::slot_storage, detail::float_slots, Policies...> storage_;
  loss_type loss_ = 0;
  bool ready_ = false;
  alignas(device::alignment) std::byte memory_[std::max<std::size_t>(layout.bytes, 1)];

  template <class T>
  T* at(std::size_t offset) {
    return reinterpret_cast<T*>(memory_ + offset);
  }
  template <class G, int Id>
  auto tensor() {
    using T = element_t<G::graph.nodes[Id].type>;
    constexpr auto n = static_cast<std::size_t>(G::count(Id, call_size));
    return std::span<T, n>(at<T>(layout.template offset<G>(Id)), n);
  }
  // Returns the examples of the whole batch, if the tensor has a batch.
  template <class G, int Id, std::size_t Begin>
  auto examples() {
    using T = element_t<G::graph.nodes[Id].type>;
    constexpr auto n = static_cast<std::size_t>(G::count(Id, batch_size));
    return std::span<T, n>(at<T>(Begin), n);
  }
  void draw_as([[maybe_unused]] std::int64_t step) {  // the draws of random operations depend on it
    if constexpr (constexpr int v = train::find_variable("random_step"); v >= 0)
      *at<std::int64_t>(layout.variable[v]) = step;
  }
  void start_mirrors(const detail::static_variable& v) {
    const extents all = resolve(v.dims, 1);
    detail::each_mirror(step_.update, branch_of(v), all, [&](std::size_t k, const mirror& m, const extents&) {
      std::byte* const to = memory_ + layout.mirror(k, v.offset);
      if constexpr (layout.stored.count != 0)
        if (k < layout.stored.count) return detail::start_slot<slot_type>(m, slot_at(k, v), v.bytes / sizeof(float));
      detail::start_mirror<train::template trains<float>(), train::template trains<double>()>(m, v.type, to, v.bytes,
                                                                                              memory_ + v.offset);
    });
  }
  detail::slot_place slot_at(std::size_t k, const detail::static_variable& v) {
    return layout.stored.at(memory_ + layout.mirrors, k, v.offset, static_cast<std::size_t>(&v - kept.data()));
  }
  auto branch_of(const detail::static_variable& v) const { return step_.update.branch_of(v.name, resolve(v.dims, 1)); }

  // ---- running
  template <class G>
  void run() {
    if constexpr (one_by_one) example_.template load<G>(memory_);
    detail::for_each_below<G::program.size.calls>([&]<int I> { run_call<G, I>(); });
  }
  template <class G, int Id>
  static constexpr bool adds_outer = [] {
    if constexpr (std::is_same_v<G, train>) return detail::is_outer_gradient<train>(Id);
    return false;
  }();
  template <class G, int I>
  void run_call() {
    // These are static because g++ fills automatic ones on the stack, and so keeps all that the op's card refers to.
    static constexpr detail::call c = G::program.calls[I];
    static constexpr detail::signature s = G::program.signatures[c.signature];
    if constexpr (s.op == &cards::apply) {
      if constexpr (one_by_one)
        example_.template add_gradient<c.node>(memory_);
      else
        update<c.node>();
    } else if constexpr (s.op == &cards::global_norm) {
      *tensor<G, c.node>().data() = static_cast<element_t<s.types[0]>>(know_all());
    } else if constexpr (s.op == &cards::loss_scale) {
      *tensor<G, c.node>().data() = static_cast<element_t<s.types[0]>>(step_.loss_scale());
    } else {
      [&]<int... A>(std::integer_sequence<int, A...>) {
        std::byte* const args[] = {
            at<std::byte>(layout.template offset<G>(G::program.args[c.first + A]) +
                          layout.template stride<G>(G::program.args[c.first + A]) * example_.now)...};
        if constexpr (one_by_one && adds_outer<G, c.node>)
          example_.template add_outer<device, c.node>(memory_, args[1], args[2]);
        else
          device::template settled<s, resolve(c.rows, call_size), call_size>(args);
      }(std::make_integer_sequence<int, c.count>{});
    }
  }

  // ---- updates
  static constexpr auto applies = detail::updates_of<train, one_by_one>();
  template <int Id>
  void update() {
    if constexpr (update_type::uniform)
      apply<Id>();
    else
      with_step<Id>([this](auto& one) { step_.apply(one); });
  }
  // Makes the updates from the means of all examples' gradients.
  void update_all() {
    if constexpr (update_type::needs_norm) know_all();
    detail::for_each_below<static_cast<int>(applies.size())>([&]<int I> { update<applies[I]>(); });
  }
  // Makes the measurements over all gradients; returns their norm.
  double know_all() {
    [[maybe_unused]] constexpr auto N = static_cast<int>(applies.size());
    const auto loss = [this] { return static_cast<double>(*tensor<train, loss_id>().data()); };
    double norm;
    if constexpr (update_type::uniform)
      norm = step_.settle(
          detail::squares_of_all<device, update_type, train, layout, applies, call_size, one_by_one>(memory_), loss);
    else
      norm = step_.know_all(
          [this](auto f) { detail::for_each_below<N>([&]<int I> { this->template with_step<applies[I]>(f); }); }, loss);
    if constexpr (update_type::raises_not_finite)
      if (step_.skips()) refuse_step(loss());
    return norm;
  }
  // Returns the values of an update's gradient: rows, or as many as the variable has.
  template <int Id>
  auto gradient() {
    constexpr int id = train::input(Id, 1);
    using T = element_t<train::graph.nodes[id].type>;
    constexpr auto n = static_cast<std::size_t>(train::count(id, call_size));
    return std::span<T, n>(at<T>(layout.template gradient<train>(Id, one_by_one)), n);
  }

  [[noreturn]] void refuse_step(double loss) {
    detail::refuse_gradients(loss, step_.global_step, [this](auto look) {
      detail::for_each_below<static_cast<int>(applies.size())>([&]<int I> {
        const auto g = gradient<applies[I]>();
        constexpr auto& characters = train::template name_alone<train::input(applies[I], 0)>;
        look({characters.data(), characters.size() - 1}, g.data(), g.size());
      });
    });
  }
  template <int Id>
  void apply() {
    if (step_.skips()) return;
    constexpr node n = train::graph.nodes[Id];
    constexpr std::size_t values = static_cast<std::size_t>(train::count(Id, call_size));
    constexpr std::size_t offset = layout.template offset<train>(Id);
    using T = element_t<n.type>;
    T* const theta = at<T>(offset);
    const auto mirrors = mirrors_at<T>(offset);
    const T* const g = gradient<Id>().data();
    if constexpr (layout.stored.count != 0) {
      constexpr std::size_t at = detail::variable_at(kept, offset);
      constexpr std::uint64_t key = stream_of(kept[at].name);
      const auto slots = layout.stored.template all_at<layout.stored.count>(memory_ + layout.mirrors, offset, at);
      detail::sweep_stored_slots<device, slot_type>(step_, theta, g, mirrors, slots, values, storage_.seed ^ key);
    } else if constexpr (n.attrs != 0) {
      constexpr constraint limit = constraint_of(n, train::graph.ints);
      step_.template sweep_limited<device>(limit, theta, g, mirrors.data(), resolve(n.dims, 1));
    } else if constexpr (n.inputs == 2) {
      step_.template sweep<device>(theta, g, mirrors, values);
    } else {
      constexpr std::size_t row_count = static_cast<std::size_t>(n.dims[0]);
      const auto rows = tensor<train, train::input(Id, 2)>();
      device::check_rows(rows.data(), rows.size(), row_count);
      step_.template sweep_rows<device>(theta, mirrors.data(), row_count, values, rows.data(), g, rows.size(),
                                        chains(rows.size()));
    }
  }
  template <class T>
  auto mirrors_at(std::size_t offset) {
    std::array<T*, update_type::mirror_count + 1> mirrors{};
    for (std::size_t k = 0; k < update_type::mirror_count; ++k) mirrors[k] = at<T>(layout.mirror(k, offset));
    return mirrors;
  }
  std::span<std::int32_t> chains(std::size_t rows) {
    return {at<std::int32_t>(layout.scratch), device::row_scratch(rows)};
  }

  // ---- updates whose variables differ (run/apply.hpp)
  template <int Id, class F>
  void with_step(F f) {
    constexpr node n = train::graph.nodes[Id];
    constexpr std::size_t offset = layout.template offset<train>(Id);
    constexpr std::size_t variable = detail::variable_at(kept, offset);
    using T = element_t<n.type>;
    const auto mirrors = mirrors_at<T>(offset);
    const auto values = gradient<Id>();
    gradient_view<T> g{values.data(), values.size(), nullptr, false, 0, {}};
    if constexpr (n.inputs == 3) {
      const auto rows = tensor<train, train::input(Id, 2)>();
      device::check_rows(rows.data(), rows.size(), static_cast<std::size_t>(n.dims[0]));
      g.rows = rows.data(), g.wide = sizeof(rows[0]) == 8, g.row_count = rows.size(), g.chains = chains(rows.size());
    }
    if constexpr (n.attrs != 0) states_.of[variable].limit = constraint_of(n, train::graph.ints);
    const step_memory<T> memory{at<T>(offset), mirrors.data(), {at<T>(layout.dense), layout.dense_bytes / sizeof(T)}};
    auto one = step_.template of<device, T>(states_.of[variable], memory, g);
    f(one);
  }
};

}  // namespace gradus
