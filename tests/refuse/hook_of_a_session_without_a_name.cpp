// expect: gradus: this hook has none of a hook's members; add `void after_run(gradus::run_context&, const
// at most: 70 lines
#include <gradus/train/any_hook.hpp>

struct watcher {
#ifdef FIX
  void begin() {}
#else
  void watches() {}
#endif
};

int main() { gradus::any_hook hook = watcher{}; }
