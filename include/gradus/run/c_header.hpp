// c_header writes a trained model as one C99 header: a function that predicts, with its weights as constants; it needs
// only <math.h> and <string.h>. It is meant for programs in C, for other languages through C, and for certified tool
// chains.
//
//   std::string text = gradus::c_header(model, list, {.name = "digits"});     // list: the state of a stepper
//
// In C:
//
//   #include "digits.h"
//   float work[digits_work];
//   digits_predict(image, probabilities, work);
//
// The arguments are the inputs in the order in which the model makes its placeholders, then the predictions in the
// order of the model's list.
//
// It gives the bits of the policy `portable`, on every machine with IEEE 754 floats: its sums have the trees and chains
// of docs/arithmetic.md, its functions are those of cpu/math.hpp. The header does not compile with -ffast-math.
//
// It can write, in float32: Add, Sub, Mul, RealDiv, Maximum, Minimum, SquaredDifference, Neg, Exp, Log, Sqrt, Rsqrt,
// Square, Abs, Tanh, Sigmoid, Relu, Elu, Gelu, MatMul (one matrix on the right), Conv2D, DepthwiseConv2dNative,
// MaxPool, Softmax, LogSoftmax, Sum and Mean over axes that lie side by side, Reshape, Identity; and the layers in 8
// bits of ops/frozen.hpp. Anything else between the inputs and the predictions is refused by its name.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <string>

#include "../base/state.hpp"
#include "../ops/model.hpp"

namespace gradus::inline GRADUS_BUILD {

struct c_header_options {
  // This is the prefix of every name of the header; a C identifier.
  std::string name = "model";
  // The number of examples of one call. The bits of an example may depend on it: a product with one row is summed in
  // another order. A static stepper with one_by_one predicts example by example, so 1 gives its bits, whatever its
  // static_batch is.
  std::int64_t batch = 1;
};

// Returns the header of a graph of mode predict, with the variables' values under their names in the list. Raises
// invalid_argument for a name that is no identifier, two names that would be one in C, a batch below 1 and a graph
// without predictions; unimplemented for an op, a type, a shape or a batch that it cannot write; not_found for a
// variable that is not in the list, failed_precondition for one of another type or shape.
std::string c_header(const graph& predict, const state_list& values, const c_header_options& options = {});

// Returns the same of a model function.
template <class Model>
  requires requires(Model model, graph& g) { model(g); }
std::string c_header(Model model, const state_list& values, const c_header_options& options = {}) {
  return c_header(build_model(model, mode::predict), values, options);
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "c_header.ipp"
#endif
