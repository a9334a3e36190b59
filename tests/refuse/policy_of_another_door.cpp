// expect: gradus: this policy is not one that is taken here
// expect: table of policies
// at most: 20 lines
#include <gradus/base/contract.hpp>

struct rule {
  using policy_for = gradus::kind::rule;
};
struct codec {
  using policy_for = gradus::kind::codec;
};

template <class... Policies>
void door(Policies...) {
  static_assert(gradus::policies_fit<gradus::kinds<gradus::kind::rule>, Policies...>::value);
}

int main() {
#ifdef FIX
  door(rule{});
#else
  door(codec{}, rule{});
#endif
}
