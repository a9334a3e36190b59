// A whole training step of LeNet-5 on batches of 32 images of 28 x 28: two convolutions with pools, three dense layers,
// gradient descent. As in training.cpp, but a program of its own: it takes longest to compile.
#include "models.hpp"

#include <gradus/update/rules/gradient_descent.hpp>

namespace {

using namespace training;

const gradient_descent descent{.rate = 1e-2};

const auto registered = {
    add("W3/f_lenet_b32_sgd", [](auto& s) { steps(s, compiled<lenet>{}, descent, 32, 10); }),
    add("interpreted/W3/f_lenet_b32_sgd", [](auto& s) { steps(s, interpreted{lenet}, descent, 32, 10); })};

}  // namespace
