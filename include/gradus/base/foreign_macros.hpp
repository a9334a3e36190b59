// This header lists names that the library uses and that vendors' headers define as macros. If one is a macro, a
// static_assert names it, before the macro breaks the middle of a template. base/build.hpp includes this header before
// anything else of the library.
//
// PI, HIGH, F(x), bit(b), constrain(a, b, c) and all other names that the library does not use are harmless
// (tests/order/macros.py compares). min, max, abs and round are undefined here, as the standard library's headers do
// themselves.
#pragma once
#include "compiler.hpp"

#undef min
#undef max
#undef abs
#undef round

#define GRADUS_SPELLED(...) #__VA_ARGS__
#define GRADUS_EXPANDED(...) GRADUS_SPELLED(__VA_ARGS__)
// Fails if the preprocessor replaces the word, or the word with its argument.
#define GRADUS_NO_MACRO(...)                                                                                          \
  static_assert(sizeof(GRADUS_EXPANDED(__VA_ARGS__)) == sizeof(#__VA_ARGS__) &&                                       \
                    GRADUS_EXPANDED(__VA_ARGS__)[0] == #__VA_ARGS__[0] &&                                             \
                    GRADUS_EXPANDED(__VA_ARGS__)[sizeof(#__VA_ARGS__) - 2] == #__VA_ARGS__[sizeof(#__VA_ARGS__) - 2], \
                "gradus: " #__VA_ARGS__                                                                               \
                " is a macro here, and a word of the library's code; "                                                \
                "include gradus before the header that defines it, or #undef it");

GRADUS_NO_MACRO(A)
GRADUS_NO_MACRO(B)
GRADUS_NO_MACRO(C)
GRADUS_NO_MACRO(D)
GRADUS_NO_MACRO(E)
GRADUS_NO_MACRO(F)
GRADUS_NO_MACRO(G)
GRADUS_NO_MACRO(H)
GRADUS_NO_MACRO(I)
GRADUS_NO_MACRO(K)
GRADUS_NO_MACRO(L)
GRADUS_NO_MACRO(M)
GRADUS_NO_MACRO(N)
GRADUS_NO_MACRO(N(x))
GRADUS_NO_MACRO(O)
GRADUS_NO_MACRO(P)
GRADUS_NO_MACRO(Q)
GRADUS_NO_MACRO(R)
GRADUS_NO_MACRO(R(x))
GRADUS_NO_MACRO(S)
GRADUS_NO_MACRO(T)
GRADUS_NO_MACRO(T(x))
GRADUS_NO_MACRO(U)
GRADUS_NO_MACRO(V)
GRADUS_NO_MACRO(W)
GRADUS_NO_MACRO(X)
GRADUS_NO_MACRO(slots)      // Qt
GRADUS_NO_MACRO(emit)       // Qt
GRADUS_NO_MACRO(forever)    // Qt
GRADUS_NO_MACRO(near)       // Windows
GRADUS_NO_MACRO(far)        // Windows
GRADUS_NO_MACRO(small)      // Windows
GRADUS_NO_MACRO(word(x))    // Arduino
GRADUS_NO_MACRO(check(x))   // macOS
GRADUS_NO_MACRO(select(x))  // some C libraries

#undef GRADUS_NO_MACRO
#undef GRADUS_EXPANDED
#undef GRADUS_SPELLED
