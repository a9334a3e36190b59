// expect: gradus: two policies of one kind were given
// expect: keep one
// at most: 20 lines
#include <gradus/base/contract.hpp>

struct slow {
  using policy_for = gradus::kind::rule;
};
struct fast {
  using policy_for = gradus::kind::rule;
};

template <class... Policies>
void door(Policies...) {
  static_assert(gradus::policies_fit<gradus::kinds<gradus::kind::rule, gradus::kind::clip>, Policies...>::value);
}

int main() {
#ifdef FIX
  door(slow{});
#else
  door(slow{}, fast{});
#endif
}
