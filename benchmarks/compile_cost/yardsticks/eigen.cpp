// Yardstick: two layers trained by hand with Eigen, 28 lines. What a program that trains costs with a small library.
#include <Eigen/Dense>
#include <cstdio>
#include <cstdlib>
int main(int argc, char** argv) {
  using M = Eigen::Matrix<float, -1, -1, Eigen::RowMajor>;
  int steps = argc > 1 ? std::atoi(argv[1]) : 1;
  M w1 = M::Random(784, 128) / 28, w2 = M::Random(128, 10) / 11, x = M::Random(32, 784), h, o, d, dh;
  Eigen::RowVectorXf b1 = Eigen::RowVectorXf::Zero(128), b2 = Eigen::RowVectorXf::Zero(10);
  int y[32];
  for (auto& v : y) v = std::rand() % 10;
  for (int i = 0; i < steps; ++i) {
    h = ((x * w1).rowwise() + b1).cwiseMax(0.0f);
    o = (h * w2).rowwise() + b2;
    double loss = 0;
    d = o;
    for (int r = 0; r < 32; ++r) {
      d.row(r) = (o.row(r).array() - o.row(r).maxCoeff()).exp();
      d.row(r) /= d.row(r).sum();
      loss -= std::log(d(r, y[r]));
      d(r, y[r]) -= 1;
    }
    d /= 32;
    dh = (h.array() > 0).select(d * w2.transpose(), 0.0f);
    w2 -= 1e-2f * h.transpose() * d;
    b2 -= 1e-2f * d.colwise().sum();
    w1 -= 1e-2f * x.transpose() * dh;
    b1 -= 1e-2f * dh.colwise().sum();
    if (i == 0) {
      std::printf("first step %g\n", loss / 32);
      std::fflush(stdout);
    }
  }
}
