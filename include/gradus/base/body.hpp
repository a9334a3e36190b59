// This header decides how the bodies of functions that are not templates get into a program. A header declares the
// functions, and the .ipp file of the same name has the bodies. By default the header includes that file at its end,
// and the functions are inline. A program that links gradus::compiled is compiled with GRADUS_COMPILED: its own files
// see only the declarations, and the library's files, include/gradus/compiled/*.cpp, have the bodies.
#pragma once
#include "build.hpp"

#ifdef GRADUS_COMPILED
#define GRADUS_BODY
#else
#define GRADUS_BODY inline
#endif

// A function that constant expressions evaluate, and to which a card of an op points: `GRADUS_CARD_FUNCTION void
// infer_add(inference&)`. With GRADUS_COMPILED a program's own files evaluate it as well, but the code that the card
// points to is in the library alone (compiled/ops.cpp): a card that a program names would otherwise bring it, and all
// that it calls, into every file.
#if !defined(GRADUS_COMPILED)
#define GRADUS_CARD_FUNCTION constexpr
#elif defined(GRADUS_CARD_FUNCTIONS_HERE)
#define GRADUS_CARD_FUNCTION [[gnu::used]] constexpr
#else
#define GRADUS_CARD_FUNCTION [[gnu::gnu_inline]] extern inline constexpr
#endif

// The same for a function that few programs call: `GRADUS_RARE void f(int);`, and in the .ipp file `GRADUS_RARE_BODY
// void f(int) {...}`. Without GRADUS_COMPILED it is a template on nothing, so that a program that does not call it
// compiles none of what it calls. A compiler instantiates a constexpr function where it is named, also in a template
// that nobody calls. So where such a function calls another one, or needs kernels, it passes one argument through
// GRADUS_WHEN_CALLED, which makes the call depend on the template's parameter.
#ifdef GRADUS_COMPILED
#define GRADUS_RARE
#define GRADUS_RARE_BODY
#define GRADUS_WHEN_CALLED(x) (x)
#else
#define GRADUS_RARE template <class Rare = void>
#define GRADUS_RARE_BODY template <class Rare>
#define GRADUS_WHEN_CALLED(x) gradus::detail::when_called<Rare>(x)
namespace gradus::inline GRADUS_BUILD::detail {
template <class Rare, class T>
constexpr const T& when_called(const T& x) {
  return x;
}
}  // namespace gradus::inline GRADUS_BUILD::detail
#endif
