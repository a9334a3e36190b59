// expect: gradus: .map(...) needs #include <gradus/input/map.hpp>
// within: 8 lines
#include <gradus/input/dataset.hpp>
#ifdef FIX
#include <gradus/input/map.hpp>
#endif

int main() {
  const int numbers[] = {1, 2, 3};
  auto doubled = gradus::from_spans("i", numbers).map([](gradus::datum&) {});
}
