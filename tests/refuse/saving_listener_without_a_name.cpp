// expect: gradus: this saving listener has a function that would never be called, or none that would; give it one
// within: 8 lines
// at most: 40 lines
#include <gradus/gradus.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto x = g.placeholder("x", {batch, 4});
  return model_spec{.loss = reduce_mean(square(dense(x, {.units = 3})))};
};

struct watcher {
  using policy_for = gradus::kind::saving_listener;
#ifdef FIX
  void before_save(gradus::hooked_session&, std::int64_t) {}
#else
  void saved(gradus::hooked_session&, std::int64_t) {}
#endif
};

int main() {
#ifdef FIX
  gradus::make_trainer<model>(gradus::adam{}, watcher{});
#else
  gradus::make_trainer<model>(gradus::adam{}, watcher{});
#endif
}
