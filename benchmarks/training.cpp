// A whole training step of small models: feed a batch, gradients, update. The model is compiled, the batch size is not.
// The names are those of the same step in other libraries' benchmarks, so that benchmarks/compare can put them side by
// side; "interpreted/" is the same graph built by the program.
//
// Subnormal numbers are flushed to zero, as TensorFlow does on its threads: the moments of a dead unit decay into them,
// and each then costs a hundred times as much. "/subnormals:keep" is the same step with them kept, the processor's
// default.
#include "models.hpp"

#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

namespace {

using namespace training;

constexpr auto a = regression;
constexpr auto b = mlp<32, 64, 64, 4>;
constexpr auto c = mlp<784, 128, 0, 10>;
constexpr auto d = mlp<784, 512, 256, 10>;

const gradient_descent slow{.rate = 1e-3}, fast_descent{.rate = 1e-2};
const adam moments{.rate = 1e-3};

const auto registered = {
    add("W3/a_mlp_8-16-1_b1_sgd", [](auto& s) { steps(s, compiled<a>{}, slow, 1, 1); }),
    add("W3/b_mlp_32-64-64-4_b16_adam", [](auto& s) { steps(s, compiled<b>{}, moments, 16, 4); }),
    add("W3/c_mlp_784-128-10_b32_sgd", [](auto& s) { steps(s, compiled<c>{}, fast_descent, 32, 10); }),
    add("W3/d_mlp_784-512-256-10_b128_adam", [](auto& s) { steps(s, compiled<d>{}, moments, 128, 10); }),
    add<subnormals::keep>("W3/b_mlp_32-64-64-4_b16_adam",
                          [](auto& s) { steps<subnormals::keep>(s, compiled<b>{}, moments, 16, 4); }),
    add("interpreted/W3/a_mlp_8-16-1_b1_sgd", [](auto& s) { steps(s, interpreted{a}, slow, 1, 1); }),
    add("interpreted/W3/b_mlp_32-64-64-4_b16_adam", [](auto& s) { steps(s, interpreted{b}, moments, 16, 4); }),
    add("interpreted/W3/d_mlp_784-512-256-10_b128_adam", [](auto& s) { steps(s, interpreted{d}, moments, 128, 10); }),
    add("interpreted/W3/c_mlp_784-128-10_b32_sgd", [](auto& s) { steps(s, interpreted{c}, fast_descent, 32, 10); })};

}  // namespace
