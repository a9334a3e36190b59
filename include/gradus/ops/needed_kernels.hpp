// This header lets the longest kernels come with the functions that add their ops to a graph. An interpreted graph may
// hold any op, but a program that never calls `conv2d` need not compile the kernels of convolutions: together these
// groups are as much code as all other kernels.
//
// A function that adds an op of a group is GRADUS_RARE and calls `need_kernels(GRADUS_WHEN_CALLED(x))` for it. Where
// the function is compiled for use while the program runs, the group's kernels are compiled as well (cpu/device.hpp),
// and the call shows them to the interpreter. A call that a constant expression evaluates does nothing: a compiled
// model has its own kernels. Programs that link gradus::compiled, or that define GRADUS_EXTERN_KERNELS, have all
// kernels in one place.
#pragma once
#include "../base/build.hpp"

#include <type_traits>

#include "../base/body.hpp"

// The linker has to accept a function that no file defines (below). A program that defines this as 0, in all files, has
// all kernels wherever it interprets. Shared libraries that hide their symbols from each other cannot exchange graphs
// in either case: a graph runs where it was built, since its ops are known by the addresses of their cards.
#if defined(GRADUS_KERNELS_BY_USE)
#elif !defined(GRADUS_COMPILED) && !defined(GRADUS_EXTERN_KERNELS) && defined(__ELF__) && defined(__unix__)
#define GRADUS_KERNELS_BY_USE 1
#else
#define GRADUS_KERNELS_BY_USE 0
#endif

namespace gradus::inline GRADUS_BUILD::detail {

// These are the groups. cpu/device.hpp says which ops are in each.
struct convolution_kernels;
struct depthwise_kernels;
struct attention_kernels;
struct cached_attention_kernels;
struct layer_norm_kernels;

#if GRADUS_KERNELS_BY_USE
// Shows the kernels of a group to the interpreter. A file that adds such an op but does not include cpu/device.hpp has
// no definition of it. It is null then, unless another file of the program has one.
template <class Group>
[[gnu::weak, gnu::noinline]] void show_kernels();
template <class Group>
void show_kernels_if_any() {
  void (*volatile const show)() = &show_kernels<Group>;  // g++ takes the address of a template for one that is not null
  if (show != nullptr) show();
}
#endif

template <class Group>
constexpr void need_kernels() {
#if GRADUS_KERNELS_BY_USE
  if (!std::is_constant_evaluated()) show_kernels_if_any<Group>();
#endif
}
template <class Group, class T>
constexpr void need_kernels(const T& /*operand*/) {
  need_kernels<Group>();
}

}  // namespace gradus::inline GRADUS_BUILD::detail
