// expect: gradus: this is no exporter; it needs `std::string name()` and `std::string export_model(const
// at most: 70 lines
#include <gradus/estimator/exporter.hpp>

struct mine {
#ifdef FIX
  std::string name() const { return "mine"; }
#endif
  std::string export_model(const gradus::export_call&) const { return {}; }
};

int main() { gradus::any_exporter e = mine{}; }
