// This header makes the CPU a device: it says which kernel runs an op. Code in run/ reaches it only as a template
// argument.
#pragma once
#include "../base/build.hpp"

#include <atomic>

#include "../ops/needed_kernels.hpp"
#include "arrange.hpp"
#include "cached_attention.hpp"
#include "conv.hpp"
#include "depthwise_conv.hpp"
#include "elementwise.hpp"
#include "fused.hpp"
#include "gather.hpp"
#include "host.hpp"
#include "initialize.hpp"
#include "layer_norm.hpp"
#include "matmul.hpp"
#include "precision.hpp"
#include "random.hpp"
#include "reduce.hpp"
#include "softmax.hpp"
#include "state.hpp"
#include "sweeps.hpp"

namespace gradus::inline GRADUS_BUILD {

// This names the user's own ops, beside the built-in ones, for graphs that are interpreted: ops<&my_card>{}.
template <const card*... Ops>
struct ops {
  using policy_for = kind::operations;
  using list = op_list<Ops...>;
};

template <class Arithmetic>
struct built_in_ops;

namespace detail {
template <const card*... Ops>
constexpr bool holds_name(op_list<Ops...>, std::string_view name) {
  constexpr std::string_view names[] = {Ops->name...};  // copies: the cards would bring all that they point to
  for (const std::string_view n : names)
    if (n == name) return true;
  return false;
}
// Returns whether an op of the library has this name. Another card of the name is the user's own, or that of a shared
// library whose symbols are hidden from this one: there the same card has another address.
constexpr bool is_built_in_name([[maybe_unused]] std::string_view name) {
#if defined(__ELF__) && defined(__unix__)
  return holds_name(elementwise_ops{}, name) || holds_name(matmul_ops{}, name) || holds_name(reduce_ops{}, name) ||
         holds_name(softmax_ops{}, name) || holds_name(state_ops{}, name) || holds_name(arrange_ops{}, name) ||
         holds_name(gather_ops{}, name) || holds_name(random_ops{}, name) || holds_name(precision_ops{}, name) ||
         holds_name(fused_ops{}, name) || holds_name(conv_ops{}, name) || holds_name(depthwise_conv_ops{}, name) ||
         holds_name(attention_ops{}, name) || holds_name(cached_attention_ops{}, name) ||
         holds_name(layer_norm_ops{}, name);
#else
  return false;
#endif
}
// Returns whether the kernel of this op comes with the function that adds the op (ops/needed_kernels.hpp).
constexpr bool comes_by_use(std::string_view name) {
  return GRADUS_KERNELS_BY_USE != 0 &&
         (holds_name(conv_ops{}, name) || holds_name(depthwise_conv_ops{}, name) || holds_name(attention_ops{}, name) ||
          holds_name(cached_attention_ops{}, name) || holds_name(layer_norm_ops{}, name));
}
}  // namespace detail

// Arithmetic is `fast` unless given; `portable` gives the same bits on every machine. What an updater needs is
// inherited.
template <arithmetic Arithmetic = fast>
struct cpu : sweeps<Arithmetic> {
  using arithmetic_type = Arithmetic;
  using step_function = detail::chunk_function;

  // Runs an op in a compiled step. There is one instantiation per signature: equal layers, and the graphs of one model,
  // share it.
  template <detail::signature Signature>
  static void compiled(std::byte* const* args, const call_size& size, const kernel_details*) {
    op_kernel<Signature.op>::template run<Arithmetic>(
        detail::fixed<Signature>{size.rows, size.batch_size, size.part, size.parts}, args);
  }
  // Runs an op where rows and batch size are constants too; no two batch sizes share code.
  template <detail::signature Signature, std::int64_t Rows, std::int64_t Batch>
  static void settled(std::byte* const* args) {
    op_kernel<Signature.op>::template run<Arithmetic>(detail::fixed_batch<Signature, Rows, Batch>{}, args);
  }
  template <const card* Op>
  static void interpreted(std::byte* const* args, const call_size& size, const kernel_details* what) {
    op_kernel<Op>::template run<Arithmetic>(
        detail::dynamic{size.rows, size.batch_size, size.part, size.parts, *what->value, what->steps}, args);
  }

  // This is true if a call of this op can be divided among threads.
  template <const card* Op>
  static constexpr bool divides = detail::divisible<Op>;

  static void initialize(const initializer& init, dtype type, const shape& dims, std::uint64_t seed,
                         std::uint64_t stream, std::byte* to) {
    initialize_variable(init, type, dims, seed, stream, to);
  }

  // Does the same where type, kind and distribution are known at compile time; the program then has no code for other
  // draws.
  template <dtype Type, int Kind, int Distribution>
  static void start(const initializer& init, detail::drawn_from<element_t<Type>> from, const shape& dims,
                    std::uint64_t seed, std::uint64_t stream, std::byte* to) {
    detail::initialize_as<element_t<Type>, Kind, Distribution>(init, from, dims, seed, stream,
                                                               reinterpret_cast<element_t<Type>*>(to));
  }
  template <dtype Type>
  static constexpr auto drawing_of(const initializer& init, const shape& dims) {
    return detail::drawing_of<element_t<Type>>(init, dims);
  }
  // Adds the outer product of two rows to `sum` or, if it is the first, writes it there: with the bits of a `MatMul` of
  // one term.
  template <class T>
  static void add_outer(T* sum, const T* x, std::int64_t m, const T* y, std::int64_t n, bool first) {
    detail::add_outer<detail::pack<T, Arithmetic>>(sum, x, m, y, n, first);
  }

  // This is the alignment of tensors in an arena: a cache line where there are vectors, else what a double needs.
  static constexpr std::size_t alignment = detail::pack<float, Arithmetic>::width > 1 ? 64 : alignof(double);

  struct entry {
    const card* op;
    kernel_function run;                   // nullptr: elementwise; the op runs as part of an expression
    detail::chunk_function chunk[5] = {};  // by type_index of the computed type
    bool divides = false;
  };
  static constexpr int type_index(dtype t) {
    return t == float32 ? 0 : t == float64 ? 1 : t == int32 ? 2 : t == int64 ? 3 : 4;
  }
  template <const card* Op>
  static constexpr entry entry_of() {
    if constexpr (Op->is(trait::elementwise)) {
      entry e{Op, nullptr};
      e.chunk[0] = &detail::run_chunk<Op, float, Arithmetic>, e.chunk[1] = &detail::run_chunk<Op, double, Arithmetic>;
      if constexpr (Op->infer != &detail::infer_floats) {
        e.chunk[2] = &detail::run_chunk<Op, std::int32_t, Arithmetic>;
        e.chunk[3] = &detail::run_chunk<Op, std::int64_t, Arithmetic>;
        e.chunk[4] = &detail::run_chunk<Op, std::uint8_t, Arithmetic>;
      }
      return e;
    } else {
      return entry{Op, &interpreted<Op>, {}, divides<Op>};
    }
  }
  template <class... Lists>
  struct table;
  template <const card*... Ops>
  struct table<op_list<Ops...>> {
    static constexpr entry entries[sizeof...(Ops) + 1] = {entry_of<Ops>()..., entry{}};
  };
  template <const card*... A, const card*... B, class... Rest>
  struct table<op_list<A...>, op_list<B...>, Rest...> : table<op_list<A..., B...>, Rest...> {};

  // This is what an interpreted graph can run: the user's ops and the built-in ones.
  template <class UserOps = ops<>>
  struct registry {
    static const entry& find(const card* op) {
      for (const entry& e : table<typename UserOps::list>::entries)
        if (e.op != nullptr && e.op == op) return e;
      if (const entry* e = built_in_ops<Arithmetic>::find(op)) return *e;
      raise(
          status::unimplemented,
          text(
              "the interpreter has no kernel for ", op->name,
              detail::comes_by_use(op->name)
                  ? "; include gradus/cpu/device.hpp in the file that adds it to the graph, by its function, or define "
                    "GRADUS_KERNELS_BY_USE=0 for all files, or"
              : detail::is_built_in_name(op->name)
                  ? " of this graph, which is not this file's op of that name: let the shared library that builds a "
                    "graph also run it, or do not hide its symbols (no -fvisibility=hidden; -rdynamic for a program); "
                    "for an op of your own"
                  : ";",
              " give the session the policy ",
              op->frozen != nullptr || op->name == "Quantization"
                  ? "frozen_ops<...>{} with the weights of every frozen layer of the graph (gradus/cpu/frozen.hpp)"
              : op->name == "HostCall"
                  ? "ops<&host_op<&f>>{}; a function with a gradient needs its own card and that of each "
                    "gradient: ops<&host_op<&f, &df>, &host_op<&df>>{}"
                  : "ops<&your_card>{}"));
    }
    // Returns the card of an op by its name, or null if there is none.
    static const card* named(std::string_view name) {
      for (const entry& e : table<typename UserOps::list>::entries)
        if (e.op != nullptr && e.op->name == name) return e.op;
      return built_in_ops<Arithmetic>::named(name);
    }
  };
};

// These are the built-in ops of the interpreter: some 60 kernels and 200 formulas, most of what an interpreting file
// costs to compile. gradus::compiled has them once (compiled/kernels.cpp). A program of many such files that does not
// link it can have them in one file: define GRADUS_EXTERN_KERNELS everywhere, and write in that file
//   template struct gradus::built_in_ops<gradus::fast>;
// Without either, the kernels of some groups come with the functions that add their ops (ops/needed_kernels.hpp), and
// `named` brings all of them, since a name that is read from a file may be that of any op.
template <class Arithmetic>
struct built_in_ops {
  using entry = typename cpu<Arithmetic>::entry;
  static const entry* find(const card* op);
  static const card* named(std::string_view name);

private:
  static std::span<const entry> all();
};

namespace detail {
template <class Group>
struct ops_of_group;
template <>
struct ops_of_group<convolution_kernels> {
  using list = conv_ops;
};
template <>
struct ops_of_group<depthwise_kernels> {
  using list = depthwise_conv_ops;
};
template <>
struct ops_of_group<attention_kernels> {
  using list = attention_ops;
};
template <>
struct ops_of_group<cached_attention_kernels> {
  using list = cached_attention_ops;
};
template <>
struct ops_of_group<layer_norm_kernels> {
  using list = layer_norm_ops;
};

// Kernels of other arithmetics than `fast` are all in the table, in every program.
template <class Arithmetic>
inline constexpr bool kernels_by_use = GRADUS_KERNELS_BY_USE && std::is_same_v<Arithmetic, fast>;

template <class... Groups>
struct kernel_groups {
  template <class Device, class... Lists>
  using table = typename Device::template table<Lists..., typename ops_of_group<Groups>::list...>;

#if GRADUS_KERNELS_BY_USE
  using entry = cpu<fast>::entry;
  // The kernels of a group, which end with an empty entry, once the program has added one of its ops to a graph.
  template <class Group>
  static inline constinit std::atomic<const entry*> shown{nullptr};

  template <class Is>
  static const entry* first_of(Is is) {
    const entry* const groups[] = {shown<Groups>.load(std::memory_order_relaxed)...};
    for (const entry* e : groups)
      for (; e != nullptr && e->op != nullptr; ++e)
        if (is(*e->op)) return e;
    return nullptr;
  }
  static void show_all() { (show_kernels<Groups>(), ...); }
#endif
};
using built_in_groups = kernel_groups<convolution_kernels, depthwise_kernels, attention_kernels,
                                      cached_attention_kernels, layer_norm_kernels>;

#if GRADUS_KERNELS_BY_USE
template <class Group>
void show_kernels() {
  using table = cpu<fast>::table<typename ops_of_group<Group>::list>;
  built_in_groups::shown<Group>.store(table::entries, std::memory_order_relaxed);
}
#endif
}  // namespace detail

template <class Arithmetic>
std::span<const typename cpu<Arithmetic>::entry> built_in_ops<Arithmetic>::all() {
  using groups =
      std::conditional_t<detail::kernels_by_use<Arithmetic>, detail::kernel_groups<>, detail::built_in_groups>;
  using table =
      typename groups::template table<cpu<Arithmetic>, elementwise_ops, matmul_ops, reduce_ops, softmax_ops, state_ops,
                                      arrange_ops, gather_ops, random_ops, precision_ops, host_ops, fused_ops>;
  return table::entries;
}
template <class Arithmetic>
const typename cpu<Arithmetic>::entry* built_in_ops<Arithmetic>::find(const card* op) {
  for (const entry& e : all())
    if (e.op != nullptr && e.op == op) return &e;
#if GRADUS_KERNELS_BY_USE
  if constexpr (detail::kernels_by_use<Arithmetic>)
    return detail::built_in_groups::first_of([op](const card& c) { return &c == op; });
#endif
  return nullptr;
}
template <class Arithmetic>
const card* built_in_ops<Arithmetic>::named(std::string_view name) {
  for (const entry& e : all())
    if (e.op != nullptr && e.op->name == name) return e.op;
#if GRADUS_KERNELS_BY_USE
  if constexpr (detail::kernels_by_use<Arithmetic>) {
    detail::built_in_groups::show_all();
    const entry* const found = detail::built_in_groups::first_of([name](const card& c) { return c.name == name; });
    if (found != nullptr) return found->op;
  }
#endif
  return nullptr;
}
#if defined(GRADUS_EXTERN_KERNELS) || defined(GRADUS_COMPILED)
namespace detail {
// This is `portable`, except in a build that `portable` refuses (-ffast-math, x87): there even naming its kernels would
// be an error.
using compiled_beside_fast = std::conditional_t<reorders_arithmetic || !rounds_to_its_type, approximate, portable>;
}  // namespace detail
extern template struct built_in_ops<fast>;
extern template struct built_in_ops<detail::compiled_beside_fast>;
#endif

// This is what updater and session run on by default (declared in run/device.hpp).
struct default_device : cpu<fast> {
  template <arithmetic Arithmetic>
  using with = cpu<Arithmetic>;
};

}  // namespace gradus
