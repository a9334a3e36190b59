// expect: gradus: this part of a chain has no formula
// within: 8 lines
// at most: 60 lines
#include <gradus/update/composed.hpp>

#include <gradus/update/rules/adam.hpp>

struct halved {
  using policy_for = gradus::kind::transform;
  template <class N>
#ifdef FIX
  void before(N&, N& g, auto) const {
    g = g * N::of(0.5);
  }
#else
  N before(N g) const {
    return g * N::of(0.5);
  }
#endif
};

int main() { gradus::composed update{gradus::chain{halved{}, gradus::adam{}}}; }
