// expect: gradus: this log sink's `step` cannot be called with (const gradus::progress_report&, bool), so it would
// within: 8 lines
// at most: 40 lines
#include <gradus/gradus.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto x = g.placeholder("x", {batch, 4});
  return model_spec{.loss = reduce_mean(square(dense(x, {.units = 3})))};
};

struct listener {
  using policy_for = gradus::kind::log_sink;
  void line(std::string_view) {}
#ifdef FIX
  void step(const gradus::progress_report&, bool) {}
#else
  void step(std::int64_t global_step, double loss) {}
#endif
};

int main() {
#ifdef FIX
  gradus::make_trainer<model>(gradus::adam{}, listener{});
#else
  gradus::make_trainer<model>(gradus::adam{}, listener{});
#endif
}
