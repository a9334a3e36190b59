// Yardstick: the same model with libtorch's C++ interface, 17 lines.
#include <torch/torch.h>
#include <cstdio>
#include <cstdlib>
int main(int argc, char** argv) {
  int steps = argc > 1 ? std::atoi(argv[1]) : 1;
  torch::nn::Sequential net(torch::nn::Linear(784, 128), torch::nn::ReLU(), torch::nn::Linear(128, 10));
  torch::optim::SGD opt(net->parameters(), 1e-2);
  auto x = torch::rand({32, 784}), y = torch::randint(0, 10, {32}, torch::kLong);
  for (int i = 0; i < steps; ++i) {
    opt.zero_grad();
    auto loss = torch::nn::functional::cross_entropy(net->forward(x), y);
    loss.backward();
    opt.step();
    if (i == 0) {
      std::printf("first step %g\n", loss.item<double>());
      std::fflush(stdout);
    }
  }
}
