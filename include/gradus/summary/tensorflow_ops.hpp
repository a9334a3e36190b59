// This table gives every op of this library in TensorFlow 1.15's own ops: one line of text for each op, which
// tensorflow_graph.hpp reads when a .meta file is written. It is text and not code, because every program that trains
// compiles this file, but writes a .meta file only once.
//
//   a = Mul($0, $1); Sum(a, @axes){keep_dims=keep}
//
// The last expression is the node itself; those before it are helpers whose names begin with its name.
//
//   $0 $1 ... $*   the operands, and all of them        0.5   a constant of operand 0's type, 1i one of int32
//   ^a             a control input                       @axes a constant of this node's settings, as a tensor
//   {key=keep}     an attribute: of this node's settings, or true, a number, a type
#pragma once
#include "../base/build.hpp"

#include <string_view>

namespace gradus::inline GRADUS_BUILD::detail {

// How a TensorFlow op's type attributes follow from its inputs: "T=0" is the type of input 0, "N=#" the number of
// inputs, "N=#1" one fewer, "T=*1" the list of types from input 1 on. `result` is the index of the input whose type the
// result has, or the name of an attribute, or a type. An op that is not listed has the attribute T and a result, both
// of input 0's type.
struct tensorflow_op {
  std::string_view name, attributes, result;
};
inline constexpr tensorflow_op tensorflow_ops[] = {
    {"All", "Tidx=1", "bool"},
    {"ArgMax", "T=0 Tidx=1", "output_type"},
    {"Assert", "T=*1", "0"},
    {"AvgPoolGrad", "T=1", "1"},
    {"BroadcastTo", "T=0 Tidx=1", "0"},
    {"Cast", "SrcT=0", "DstT"},
    {"ConcatV2", "T=0 N=#1 Tidx=-1", "0"},
    {"Conv2DBackpropInput", "T=1", "1"},
    {"DepthwiseConv2dNativeBackpropInput", "T=1", "1"},
    {"Equal", "T=0", "bool"},
    {"ExpandDims", "T=0 Tdim=1", "0"},
    {"Fill", "T=1 index_type=0", "1"},
    {"GatherV2", "Tparams=0 Tindices=1 Taxis=2", "0"},
    {"Greater", "T=0", "bool"},
    {"GreaterEqual", "T=0", "bool"},
    {"Less", "T=0", "bool"},
    {"LessEqual", "T=0", "bool"},
    {"LogicalAnd", "", "bool"},
    {"LogicalNot", "", "bool"},
    {"LogicalOr", "", "bool"},
    {"Max", "T=0 Tidx=1", "0"},
    {"Mean", "T=0 Tidx=1", "0"},
    {"Min", "T=0 Tidx=1", "0"},
    {"NotEqual", "T=0", "bool"},
    {"OneHot", "T=2 TI=0", "2"},
    {"Pack", "T=0 N=#", "0"},
    {"PadV2", "T=0 Tpaddings=1", "0"},
    {"Prod", "T=0 Tidx=1", "0"},
    {"RandomStandardNormal", "T=0", "dtype"},
    {"RandomUniform", "T=0", "dtype"},
    {"Range", "Tidx=0", "0"},
    {"Reshape", "T=0 Tshape=1", "0"},
    {"SelectV2", "T=1", "1"},
    {"Shape", "T=0", "int32"},
    {"Slice", "T=0 Index=1", "0"},
    {"SparseSoftmaxCrossEntropyWithLogits", "T=0 Tlabels=1", "0"},
    {"Sum", "T=0 Tidx=1", "0"},
    {"Transpose", "T=0 Tperm=1", "0"},
    {"TruncatedNormal", "T=0", "dtype"},
    {"UnsortedSegmentSum", "T=0 Tindices=1 Tnumsegments=2", "0"},
};

// An op of this library. A name that ends in '#' is for operands that are not floats. `widens` is true if TensorFlow
// has no kernel of the op for uint8, so that it is computed in int32 and cast back.
struct tensorflow_formula {
  std::string_view name, text;
  bool widens = false;
};
inline constexpr tensorflow_formula tensorflow_formulas[] = {
    // elementwise
    {"Add", "Add($0, $1)", true},
    {"Sub", "Sub($0, $1)", true},
    {"Mul", "Mul($0, $1)", true},
    {"RealDiv", "RealDiv($0, $1)"},
    {"RealDiv#", "TruncateDiv($0, $1)"},
    {"Pow", "Pow($0, $1)"},
    {"Maximum", "Maximum($0, $1)", true},
    {"Minimum", "Minimum($0, $1)", true},
    {"SquaredDifference", "SquaredDifference($0, $1)", true},
    {"Greater", "Greater($0, $1)", true},
    {"GreaterEqual", "GreaterEqual($0, $1)", true},
    {"Less", "Less($0, $1)", true},
    {"LessEqual", "LessEqual($0, $1)", true},
    {"Equal", "Equal($0, $1)", true},
    {"NotEqual", "NotEqual($0, $1)", true},
    {"LogicalAnd", "LogicalAnd($0, $1)"},
    {"LogicalOr", "LogicalOr($0, $1)"},
    {"LogicalNot", "LogicalNot($0)"},
    {"Neg", "Neg($0)", true},
    {"Exp", "Exp($0)"},
    {"Log", "Log($0)"},
    {"Log1p", "Log1p($0)"},
    {"Sqrt", "Sqrt($0)"},
    {"Rsqrt", "Rsqrt($0)"},
    {"Square", "Square($0)", true},
    {"Abs", "Abs($0)", true},
    {"Sign", "Sign($0)", true},
    {"Floor", "Floor($0)"},
    {"Tanh", "Tanh($0)"},
    {"Sigmoid", "Sigmoid($0)"},
    {"Relu", "Relu($0)", true},
    {"Elu", "Elu($0)"},
    {"Softplus", "Softplus($0)"},
    {"Erf", "Erf($0)"},
    {"Gelu",
     "c = Mul($0, Square($0)); t = Tanh(Mul(0.7978845608028654, Add($0, Mul(0.044715, c))));"
     " Mul(Mul(0.5, $0), Add(1, t))"},
    {"Cast", "Cast($0){DstT=type}"},
    {"Select", "SelectV2($0, $1, $2)"},
    {"TanhGrad", "TanhGrad($1, $0)"},
    {"SigmoidGrad", "SigmoidGrad($1, $0)"},
    {"ReluGrad", "ReluGrad($0, $1)", true},
    {"EluGrad", "EluGrad($0, $1)"},
    {"GeluGrad",
     "s = Square($1); g = Sigmoid(Mul($1, Add(1.5957691216057308, Mul(0.07135481627362878, s))));"
     " d = Mul(Mul(g, Sub(1, g)), Mul($1, Add(1.5957691216057308, Mul(0.21406444882088634, s))));"
     " Mul($0, Add(g, d))"},
    {"ReducePrecisionBFloat16", "Cast(Cast($0){DstT=bfloat16}){DstT=type}"},
    {"ReducePrecisionFloat16", "Cast(Cast($0){DstT=float16}){DstT=type}"},
    // ops that pass a value through
    {"Identity", "Identity($0)"},
    {"StopGradient", "StopGradient($0)"},
    {"PreventGradient", "PreventGradient($0)"},
    {"DeepCopy", "Identity($0)"},
    {"Dropout", "Identity($0)"},  // inference
    {"CheckBetween",
     "a = Assert(All(LogicalAnd(GreaterEqual($0, $1), LessEqual($0, $2)), @every_axis), $0); Identity($0, ^a)"},
    // shapes
    {"Reshape", "Reshape($0, @to)"},
    {"BroadcastTo", "BroadcastTo($0, @shape)"},
    {"Transpose", "Transpose($0, @perm)"},
    {"Slice", "Slice($0, @begin, @size)"},
    {"PadV2", "PadV2($0, @paddings, $1)"},
    {"ConcatV2", "ConcatV2($*, @axis)"},
    {"CausalMask", "r = Range(0i, @time, 1i); SelectV2(GreaterEqual(ExpandDims(r, -1i), r), $0, $1)"},
    {"Range", "Cast(Range(0i, @count, 1i)){DstT=type}"},
    {"Gather", "GatherV2($0, $1, 0i)"},
    {"RowsToDense", "UnsortedSegmentSum($0, $1, @rows)"},
    {"OneHot", "OneHot($0, @depth, $1, $2){axis=-1}"},
    // reductions
    {"Sum", "Sum($0, @axes){keep_dims=keep}", true},
    {"Mean", "Mean($0, @axes){keep_dims=keep}", true},
    {"Max", "Max($0, @axes){keep_dims=keep}", true},
    {"Min", "Min($0, @axes){keep_dims=keep}", true},
    {"ArgMax", "ArgMax($0, @axis){output_type=int64}", true},
    {"Size", "Cast(Prod(GatherV2(Shape($0), @axes, 0i), 0i)){DstT=type}"},
    // products
    {"MatMul", "MatMul($0, $1){transpose_a=transpose_a, transpose_b=transpose_b}"},
    {"MatMuls", "BatchMatMulV2($0, $1){adj_x=transpose_a, adj_y=transpose_b}"},
    {"Conv2D", "Conv2D($0, $1){strides=strides, padding=padding, dilations=dilations, data_format=format}"},
    {"Conv2DBackpropInput",
     "Conv2DBackpropInput(@shape, Transpose($0, @filters), $1){strides=strides, padding=padding, dilations=dilations, "
     "data_format=format}"},
    {"Conv2DBackpropFilter",
     "Conv2DBackpropFilter($0, @shape, $1){strides=strides, padding=padding, dilations=dilations, data_format=format}"},
    {"DepthwiseConv2dNative",
     "DepthwiseConv2dNative($0, $1){strides=strides, padding=padding, dilations=dilations, data_format=format}"},
    {"DepthwiseConv2dNativeBackpropInput",
     "DepthwiseConv2dNativeBackpropInput(@shape, $0, $1){strides=strides, padding=padding, dilations=dilations, "
     "data_format=format}"},
    {"DepthwiseConv2dNativeBackpropFilter",
     "DepthwiseConv2dNativeBackpropFilter($0, @shape, $1){strides=strides, padding=padding, dilations=dilations, "
     "data_format=format}"},
    {"MaxPool", "MaxPool($0){ksize=window, strides=strides, padding=padding, data_format=format}"},
    {"MaxPoolGrad",
     "y = MaxPool($0){ksize=window, strides=strides, padding=padding, data_format=format};"
     " MaxPoolGrad($0, y, $1){ksize=window, strides=strides, padding=padding, data_format=format}"},
    {"AvgPool", "AvgPool($0){ksize=window, strides=strides, padding=padding, data_format=format}"},
    {"AvgPoolGrad", "AvgPoolGrad(@shape, $0){ksize=window, strides=strides, padding=padding, data_format=format}"},
    // rows
    {"Softmax", "Softmax($0)"},
    {"LogSoftmax", "LogSoftmax($0)"},
    {"SoftmaxGrad", "Mul(Sub($0, Sum(Mul($0, $1), -1i){keep_dims=true}), $1)"},
    {"LogSoftmaxGrad", "Sub($0, Mul(Exp($1), Sum($0, -1i){keep_dims=true}))"},
    {"SoftmaxCrossEntropyWithLogits",
     "x = SoftmaxCrossEntropyWithLogits(Reshape($0, @matrix), Reshape($1, @matrix));"
     " Reshape(x, @to)"},
    {"SparseSoftmaxCrossEntropyWithLogits",
     "x = SparseSoftmaxCrossEntropyWithLogits(Reshape($0, @matrix), Reshape($1, @list)); Reshape(x, @to)"},
    {"SparseSoftmaxCrossEntropyGrad",
     "Mul(Sub(Softmax($0), OneHot($1, @last_extent, 1, 0){axis=-1}), ExpandDims($2, -1i))"},
    {"LayerNorm",
     "c = Sub($0, Mean($0, -1i){keep_dims=true});"
     " Mul(c, Rsqrt(Add(Mean(Square(c), -1i){keep_dims=true}, @epsilon)))"},
    {"LayerNorm gamma",
     "c = Sub($0, Mean($0, -1i){keep_dims=true});"
     " n = Mul(c, Rsqrt(Add(Mean(Square(c), -1i){keep_dims=true}, @epsilon))); Mul(n, $1)"},
    {"LayerNorm beta",
     "c = Sub($0, Mean($0, -1i){keep_dims=true});"
     " n = Mul(c, Rsqrt(Add(Mean(Square(c), -1i){keep_dims=true}, @epsilon))); Add(n, $1)"},
    {"LayerNorm gamma beta",
     "c = Sub($0, Mean($0, -1i){keep_dims=true});"
     " n = Mul(c, Rsqrt(Add(Mean(Square(c), -1i){keep_dims=true}, @epsilon)));"
     " Add(Mul(n, $1), $2)"},
    {"LayerNormGrad",
     "c = Sub($0, Mean($0, -1i){keep_dims=true});"
     " i = Rsqrt(Add(Mean(Square(c), -1i){keep_dims=true}, @epsilon)); n = Mul(c, i);"
     " m = Mean(Mul($1, n), -1i){keep_dims=true};"
     " Mul(i, Sub(Sub($1, Mean($1, -1i){keep_dims=true}), Mul(n, m)))"},
    {"LayerNormGrad gamma",
     "c = Sub($0, Mean($0, -1i){keep_dims=true}); d = Mul($1, $2);"
     " i = Rsqrt(Add(Mean(Square(c), -1i){keep_dims=true}, @epsilon)); n = Mul(c, i);"
     " m = Mean(Mul(d, n), -1i){keep_dims=true};"
     " Mul(i, Sub(Sub(d, Mean(d, -1i){keep_dims=true}), Mul(n, m)))"},
    {"LayerNormParameterGrad",
     "c = Sub($0, Mean($0, -1i){keep_dims=true});"
     " n = Mul(c, Rsqrt(Add(Mean(Square(c), -1i){keep_dims=true}, @epsilon)));"
     " Pack(Sum(Mul($1, n), @leading), Sum($1, @leading))"},
    // attention: the packed rows are [n, time, 3, heads, each], turned to [3, n, heads, time, each]
    {"AttentionWeights",
     "p = Transpose(Reshape($0, @apart), @turn);"
     " s = BatchMatMulV2(GatherV2(p, 0i, 0i), GatherV2(p, 1i, 0i)){adj_y=true};"
     " Softmax(Mul(s, @scale))"},
    {"AttentionWeights causal",
     "p = Transpose(Reshape($0, @apart), @turn); r = Range(0i, @time, 1i);"
     " s = BatchMatMulV2(GatherV2(p, 0i, 0i), GatherV2(p, 1i, 0i)){adj_y=true};"
     " Softmax(SelectV2(GreaterEqual(ExpandDims(r, -1i), r), Mul(s, @scale), -1e30))"},
    {"AttentionMix",
     "p = Transpose(Reshape($1, @apart), @turn);"
     " Reshape(Transpose(BatchMatMulV2($0, GatherV2(p, 2i, 0i)), @heads_in), @to)"},
    {"AttentionGrad",
     "p = Transpose(Reshape($0, @apart), @turn); q = GatherV2(p, 0i, 0i); k = GatherV2(p, 1i, 0i);"
     " o = Transpose(Reshape($3, @heads_apart), @heads_in);"
     " w = BatchMatMulV2(o, GatherV2(p, 2i, 0i)){adj_y=true};"
     " s = Mul(Mul(Sub(w, Sum(Mul(w, $1), -1i){keep_dims=true}), $1), @scale);"
     " d = Pack(BatchMatMulV2(s, k), BatchMatMulV2(s, q){adj_x=true}, BatchMatMulV2($1, o){adj_x=true});"
     " Reshape(Transpose(d, @turn_back), @to)"},
    // drawn anew in each run, as here, but not the same numbers
    {"RandomUniform", "RandomUniform(@shape){dtype=type}"},
    {"RandomStandardNormal", "RandomStandardNormal(@shape){dtype=type}"},
};

// Ops of this library that do not occur in inference, or that no graph can hold, with the reason.
struct tensorflow_absence {
  std::string_view name, reason;
};
inline constexpr tensorflow_absence tensorflow_absences[] = {
    {"HostCall", "it calls a function of the program, which no file can hold"},
    {"Assign", "it changes a variable, which inference does not"},
    {"AssignAdd", "it changes a variable, which inference does not"},
    {"AssignSub", "it changes a variable, which inference does not"},
    {"RememberPosition", "it changes a cache, which inference does not"},
    {"CachedAttentionWeights", "it reads a cache that a graph of TensorFlow does not have"},
    {"CachedAttention", "it reads a cache that a graph of TensorFlow does not have"},
    {"Apply", "it is a part of the training step"},
    {"GlobalNorm", "it is a part of the training step"},
    {"LossScale", "it is a part of the training step"},
    {"BeginUpdates", "it is a part of the training step"},
    {"UpdateVariable", "it is a part of the training step"},
    {"FinishUpdates", "it is a part of the training step"},
    {"NoOp", "it makes no tensor"},
    {"Fused", "a pass made it of several ops; show the graph before it is fused"},
    {"FusedMatMul", "a pass made it of several ops; show the graph before it is fused"},
    {"GatherSum", "a pass made it of several ops; show the graph before it is fused"},
    {"FusedReduction", "a pass made it of several ops; show the graph before it is fused"},
    {"Conv2DMaxPool", "a pass made it of a convolution and a pool; show the graph before it is fused"},
    {"PooledValues", "a pass made it of a convolution and a pool; show the graph before it is fused"},
    {"Conv2DMaxPoolBackpropFilter", "a pass made it of a convolution and a pool; show the graph before it is fused"},
    {"Conv2DMaxPoolBackpropBias", "a pass made it of a convolution and a pool; show the graph before it is fused"},
    {"Conv2DMaxPoolBackpropConv", "a pass made it of a convolution and a pool; show the graph before it is fused"},
    {"FrozenMatMul", "its weights are constants of the program, in 8 bits; export a model with layers of float32"},
    {"FrozenConv2D", "its weights are constants of the program, in 8 bits; export a model with layers of float32"},
    {"FrozenDepthwiseConv2d",
     "its weights are constants of the program, in 8 bits; export a model with layers of float32"},
    {"Quantization", "it belongs to a layer with frozen weights; export a model with layers of float32"},
    {"Quantize", "it belongs to a layer with frozen weights; export a model with layers of float32"},
};

// Returns whether an op of this library has the settings of windows (window_attr).
constexpr bool has_windows(std::string_view op) {
  return op.starts_with("Conv2D") || op.starts_with("DepthwiseConv2d") || op.starts_with("MaxPool") ||
         op.starts_with("AvgPool");
}
constexpr const tensorflow_op* find_tensorflow_op(std::string_view name) {
  for (const auto& op : tensorflow_ops)
    if (op.name == name) return &op;
  return nullptr;
}
constexpr const tensorflow_formula* find_tensorflow_formula(std::string_view name) {
  for (const auto& f : tensorflow_formulas)
    if (f.name == name) return &f;
  return nullptr;
}
constexpr std::string_view find_tensorflow_absence(std::string_view name) {
  for (const auto& a : tensorflow_absences)
    if (a.name == name) return a.reason;
  return {};
}

}  // namespace gradus::detail
