#include "model.hpp"

int main() {
  const answer a = one(), b = two();
  const bool shared = a.graph == b.graph && a.program == b.program && a.kernels == b.kernels;
  return shared && a.loss == b.loss && a.loss > 0 && a.loss < 2 ? 0 : 1;
}
