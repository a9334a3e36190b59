// This header does the work between the examples of a static batch that goes through the model one example at a time
// (one_by_one). It copies inputs that kernels cannot read in place, adds gradients, averages outputs, and keeps
// predictions.
#pragma once
#include "../base/mean_in_words.hpp"
#include "static_layout.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Returns the outputs whose means are a step's outputs, as part_sums of run/microbatch.hpp has them.
template <class Train>
consteval auto averaged_outputs() {
  constexpr auto pick = [](int* to) {
    std::size_t n = 0;
    for (int i = 0; i < Train::graph.size.outputs; ++i) {
      const output& o = Train::graph.outputs[i];
      const node& at = Train::graph.nodes[o.node];
      const bool number = (at.type == float32 || at.type == float64) && gradus::count(at.dims) == 1;
      bool known = Train::program.places[o.node].region != node_place::slot;
      for (std::size_t k = 0; k < n; ++k) known = known || to[k] == o.node;
      if (number && !known && !is_of_leaf(Train::graph.parts().view, o.node) &&
          (o.kind == output::loss || o.kind == output::metric))
        to[n++] = o.node;
    }
    return n;
  };
  constexpr std::size_t count = [pick] {
    int ids[room(Train::graph.size.outputs)]{};
    return pick(ids);
  }();
  std::array<int, count> out{};
  int ids[room(Train::graph.size.outputs)]{};
  pick(ids);
  std::copy(ids, ids + count, out.begin());
  return out;
}

template <class T>
void add_values(T* sum, const T* x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) sum[i] += x[i];
}
template <class T>
void divide_values(T* x, std::size_t n, T by) {
  for (std::size_t i = 0; i < n; ++i) x[i] /= by;
}

// The mean of a step's outputs over the examples, in double.
class mean_in_double {
public:
  void start(double x) { sum_ = x; }
  void add(double x) { sum_ += x; }
  double over(std::uint32_t n) const { return sum_ / static_cast<double>(n); }

private:
  double sum_ = 0;
};

// It works on a batch of N examples in `memory`, laid out as Layout. Without Doubles, means of floats have the same
// bits and are computed by integers.
template <class Train, class Forward, const auto& Layout, std::int64_t N, bool Doubles>
class static_examples {
public:
  std::size_t now = 0;  // the example that goes through the model

  // Copies the example's inputs to where kernels read them, if they are not read in place.
  template <class G>
  void load(std::byte* memory) const {
    for_each_below<G::program.size.slots>([&]<int Slot> {
      constexpr static_input i = Layout.template input_at<G>(Slot);
      if constexpr (i.copied) {
        constexpr std::size_t to = std::is_same_v<G, Train> ? Layout.slot[Slot] : Layout.forward_slot[Slot];
        std::memcpy(memory + to, memory + i.begin + now * i.each, i.each);
      }
    });
  }
  // Adds an update's gradient to the sum, which is where gradients are; does nothing if it was added there already.
  template <int Id>
  void add_gradient(std::byte* memory) const {
    constexpr int gradient = Train::input(Id, 1);
    if constexpr (is_outer_gradient<Train>(gradient)) return;
    using T = element_t<Train::graph.nodes[gradient].type>;
    constexpr auto n = static_cast<std::size_t>(Train::count(gradient, 1));
    T* const sum = reinterpret_cast<T*>(memory + Layout.template gradient<Train>(Id, true));
    const T* const x = reinterpret_cast<const T*>(memory + Layout.template offset<Train>(gradient));
    if (now == 0)
      std::memcpy(sum, x, n * sizeof(T));
    else
      add_values(sum, x, n);
  }
  // Computes such a gradient, an outer product, into the sum.
  template <class Device, int Gradient>
  void add_outer(std::byte* memory, const std::byte* x, const std::byte* y) const {
    using T = element_t<Train::graph.nodes[Gradient].type>;
    constexpr int rows = Train::graph.nodes[Gradient].dims.dims[0], columns = Train::graph.nodes[Gradient].dims.dims[1];
    constexpr std::size_t to = Layout.template gradient<Train>(update_of<Train>(Gradient), true);
    Device::add_outer(reinterpret_cast<T*>(memory + to), reinterpret_cast<const T*>(x), rows,
                      reinterpret_cast<const T*>(y), columns, now == 0);
  }
  void add_outputs(const std::byte* memory) {
    for_each_below<static_cast<int>(averaged.size())>([&]<int I> {
      auto& mean = std::get<I>(outputs_);
      if (now == 0)
        mean.start(*at<averaged[I]>(memory));
      else
        mean.add(*at<averaged[I]>(memory));
    });
  }
  // Turns sums into means, after the last example.
  void average(std::byte* memory) const {
    for_each_below<static_cast<int>(updates.size())>([&]<int I> {
      using T = element_t<Train::graph.nodes[updates[I]].type>;
      divide_values(reinterpret_cast<T*>(memory + Layout.template gradient<Train>(updates[I], true)),
                    static_cast<std::size_t>(Train::count(Train::input(updates[I], 0), 1)), static_cast<T>(N));
    });
    for_each_below<static_cast<int>(averaged.size())>([&]<int I> {
      using T = element_t<Train::graph.nodes[averaged[I]].type>;
      *const_cast<T*>(at<averaged[I]>(memory)) =
          static_cast<T>(std::get<I>(outputs_).over(static_cast<std::uint32_t>(N)));
    });
  }
  // Stores the example's predictions beside those of the others.
  void keep_predictions(std::byte* memory) const {
    for_each_below<Forward::graph.size.outputs>([&]<int I> {
      constexpr output o = Forward::graph.outputs[I];
      if constexpr (o.kind == output::prediction && is_batched(Forward::graph.nodes[o.node].dims)) {
        constexpr auto bytes =
            static_cast<std::size_t>(Forward::count(o.node, 1)) * size_of(Forward::graph.nodes[o.node].type);
        std::memcpy(memory + Layout.prediction[I] + now * bytes,
                    memory + Layout.template offset<Forward>(o.node) + now * Layout.template stride<Forward>(o.node),
                    bytes);
      }
    });
  }

private:
  static constexpr auto updates = updates_of<Train, true>();
  static constexpr auto averaged = averaged_outputs<Train>();
  template <int Id>
  using mean_type =
      std::conditional_t<Doubles || Train::graph.nodes[Id].type == float64, mean_in_double, mean_in_words>;
  template <class Numbers>
  struct means_of;
  template <std::size_t... I>
  struct means_of<std::index_sequence<I...>> {
    using type = std::tuple<mean_type<averaged[I]>...>;
  };
  typename means_of<std::make_index_sequence<averaged.size()>>::type outputs_{};

  template <int Id>
  static auto at(const std::byte* memory) {
    return reinterpret_cast<const element_t<Train::graph.nodes[Id].type>*>(memory + Layout.template offset<Train>(Id));
  }
};
// Is used in its place where the batch goes through as one.
struct whole_static_batch {
  static constexpr std::size_t now = 0;
};

}  // namespace gradus::detail
