// expect: gradus: this argument is not a policy
// expect: using policy_for = gradus::kind::
// at most: 25 lines
#include <gradus/base/contract.hpp>

struct rule {
  using policy_for = gradus::kind::rule;
};

template <class... Policies>
void door(Policies...) {
  static_assert(gradus::policies_fit<gradus::kinds<gradus::kind::rule>, Policies...>::value);
}

int main() {
#ifdef FIX
  door(rule{});
#else
  door(rule{}, 0.1);
#endif
}
