// The optional libraries zlib, protozero, stb and xsimd are used only if a macro is defined (GRADUS_ZLIB,
// GRADUS_PROTOZERO, GRADUS_STB, GRADUS_XSIMD), never because a header happens to be on the include path. The CMake
// target gradus::gradus defines the macro of each library that CMake found. Without the macro everything compiles and
// links, and a use that needs the library raises the error below when it runs (nothing needs xsimd: cpu/simd.hpp).
// Files with different macros have different types (base/build.hpp).
#pragma once
#include "build.hpp"

#include <string_view>

#include "error.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

struct optional_library {
  std::string_view name, macro, link;  // `link`: the linker's option, empty for a header-only library
};
inline constexpr optional_library zlib_library{"zlib", "GRADUS_ZLIB", "-lz"};
inline constexpr optional_library protozero_library{"protozero", "GRADUS_PROTOZERO", ""};
inline constexpr optional_library stb_library{"stb", "GRADUS_STB", ""};

// True if this program can write and read protobuf messages.
#if defined(GRADUS_PROTOZERO)
inline constexpr bool has_protozero = true;
#else
inline constexpr bool has_protozero = false;
#endif

// Raises unimplemented. `what` is the thing that cannot be done ("a.csv.gz: gzip data"); `otherwise` is another remedy.
[[noreturn]] inline void refuse_without(const optional_library& library, std::string_view what,
                                        std::string_view otherwise = {}) {
  raise(status::unimplemented,
        text(what, " needs ", library.name, ", and this program was compiled without it; link the CMake target ",
             "gradus::gradus (CMake then has to find ", library.name, "), or compile every file with -D", library.macro,
             library.link.empty() ? "" : " and link ", library.link, otherwise.empty() ? "" : "; or ", otherwise));
}

}  // namespace gradus::detail
