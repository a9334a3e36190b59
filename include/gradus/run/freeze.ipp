// The bodies of freeze.hpp.
#pragma once
#include "../base/body.hpp"
#include "freeze.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY graph run_passes(const graph& built, const build_options& o) {
  const auto lawful = []([[maybe_unused]] int pass, graph g) {
#if !defined(NDEBUG)
    if (const char* law = broken_law(parts_of(g)); law != nullptr)
      raise(status::internal, text("pass ", pass, " broke a law of graphs: ", law, "; please report the model"));
#endif
    return g;
  };
  const graph a = lawful(1, run_pass<1>(parts_of(built), o)), b = lawful(2, run_pass<2>(parts_of(a), o)),
              c = lawful(3, run_pass<3>(parts_of(b), o)), d = lawful(4, run_pass<4>(parts_of(c), o)),
              e = lawful(5, run_pass<5>(parts_of(d), o));
  return lawful(6, run_pass<6>(parts_of(e), o));
}

GRADUS_BODY graph run_first_pass(const graph& built, const build_options& o) { return run_pass<1>(parts_of(built), o); }

}  // namespace gradus
