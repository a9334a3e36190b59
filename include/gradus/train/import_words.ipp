// The bodies of import_words.hpp.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

#include "../base/body.hpp"
#include "../ops/attention.hpp"
#include "../ops/depthwise_conv.hpp"
#include "../ops/host.hpp"
#include "../ops/layer_norm.hpp"
#include "../ops/matmul.hpp"
#include "../ops/needed_kernels.hpp"
#include "../ops/precision.hpp"
#include "../ops/random.hpp"
#include "../ops/softmax.hpp"
#include "../summary/tensorflow_graph.hpp"
#include "import_words.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY const card* card_named(std::string_view name) {
  need_kernels<convolution_kernels>(), need_kernels<depthwise_kernels>();  // a file's graph may hold any op
  need_kernels<attention_kernels>(), need_kernels<layer_norm_kernels>();
  static constexpr const card* all[] = {
      &cards::add,
      &cards::sub,
      &cards::mul,
      &cards::div,
      &cards::pow,
      &cards::maximum,
      &cards::minimum,
      &cards::squared_difference,
      &cards::greater,
      &cards::greater_equal,
      &cards::less,
      &cards::less_equal,
      &cards::equal,
      &cards::not_equal,
      &cards::logical_and,
      &cards::logical_or,
      &cards::logical_not,
      &cards::neg,
      &cards::exp,
      &cards::log,
      &cards::log1p,
      &cards::sqrt,
      &cards::rsqrt,
      &cards::square,
      &cards::abs,
      &cards::sign,
      &cards::floor,
      &cards::tanh,
      &cards::sigmoid,
      &cards::relu,
      &cards::elu,
      &cards::gelu,
      &cards::softplus,
      &cards::erf,
      &cards::cast,
      &cards::select,
      &cards::tanh_grad,
      &cards::sigmoid_grad,
      &cards::relu_grad,
      &cards::elu_grad,
      &cards::gelu_grad,
      &cards::reduce_precision_bfloat16,
      &cards::reduce_precision_float16,
      &cards::identity,
      &cards::stop_gradient,
      &cards::prevent_gradient,
      &cards::check_between,
      &cards::reshape,
      &cards::broadcast_to,
      &cards::transpose,
      &cards::slice,
      &cards::pad,
      &cards::concat,
      &cards::causal_mask,
      &cards::range,
      &cards::gather,
      &cards::rows_to_dense,
      &cards::one_hot,
      &cards::sum,
      &cards::mean,
      &cards::max,
      &cards::min,
      &cards::argmax,
      &cards::size,
      &cards::matmul,
      &cards::conv2d,
      &cards::conv2d_input,
      &cards::conv2d_filter,
      &cards::depthwise_conv2d,
      &cards::depthwise_conv2d_input,
      &cards::depthwise_conv2d_filter,
      &cards::max_pool,
      &cards::max_pool_grad,
      &cards::avg_pool,
      &cards::avg_pool_grad,
      &cards::softmax,
      &cards::log_softmax,
      &cards::softmax_grad,
      &cards::log_softmax_grad,
      &cards::softmax_xent,
      &cards::sparse_xent,
      &cards::sparse_xent_grad,
      &cards::layer_norm,
      &cards::layer_norm_grad,
      &cards::layer_norm_grads,
      &cards::attention_weights,
      &cards::attention_mix,
      &cards::attention_grad,
      &cards::random_uniform,
      &cards::random_normal,
  };
  for (const card* c : all)
    if (c->name == name) return c;
  return nullptr;
}

GRADUS_BODY value import_words::from_pattern(int i, const pattern_match& m) {
  std::string_view form = m.what->formula->name;
  if (form.ends_with('#')) form.remove_suffix(1);
  const std::string_view card_name = form == "MatMuls" ? "MatMul" : form.substr(0, form.find(' '));
  std::vector<value> operands;
  for (const tensor_place t : m.operands) operands.push_back(t.node < 0 ? value{} : have(t));
  if (!needs_.empty()) return {};
  for (const auto& [setting, place] : m.tensors)
    if (numbers known; constant_at(place) == nullptr && !whole_numbers(i, place, known)) return {};
  if (card_name == "RandomUniform" || card_name == "RandomStandardNormal") {
    shape s;
    if (!shape_numbers(i, *m.tensor("shape"), s)) return {};
    const value v = random(*g_, card_name == "RandomUniform" ? cards::random_uniform : cards::random_normal, s,
                           type_of(i, "dtype"));
    g_->nodes[v.id].name = g_->names.unique(-1, index_.node(i).name, false);
    return v;
  }
  const card* op = card_named(card_name);
  if (op == nullptr) refuse(i, "this library has no such op", status::unimplemented);
  if (op == &cards::cast && type_of(i, "DstT") == boolean) return gradus::cast(operands.at(0), boolean);
  if (op == &cards::cast && type_of(i, "DstT") == operands.at(0).type()) return add(cards::identity, operands, {}, i);
  std::vector<int> words;
  if (!words_of(i, m, card_name, form, operands, words)) return {};
  // TensorFlow's formula of this gradient does not read the op's result.
  if (op == &cards::attention_grad && !operands.at(2))
    operands[2] = g_->add(cards::attention_mix, std::vector{operands[1], operands[0]}.data(), 2, words.data(),
                          static_cast<int>(words.size()));
  const value v = add(*op, operands, words, i);
  if (m.what->calls > 1 && !as_written(i, m, v)) return {};
  return v;
}

GRADUS_BODY bool import_words::words_of(int i, const pattern_match& m, std::string_view card_name,
                                        std::string_view form, const std::vector<value>& operands,
                                        std::vector<int>& words) {
  const auto flag = [&](std::string_view name) {
    const attr_value* a = m.attr(name);
    const bool* b = a == nullptr ? nullptr : a->get_if<bool>();
    if (a != nullptr && b == nullptr) refuse(i, text("the attribute for \"", name, "\" is no boolean"));
    return b != nullptr && *b ? 1 : 0;
  };
  const auto take = [&](const auto& a) {
    const auto w = to_words(a);
    words.assign(w.begin(), w.end());
  };
  const auto one = [&](std::string_view name, int& to) {
    numbers list;
    if (!whole_numbers(i, *m.tensor(name), list)) return false;
    if (list.list.size() != 1 || list.list[0].batch || list.list[0].n < INT32_MIN || list.list[0].n > most_extent)
      refuse(i, text("\"", name, "\" has to be one number that is known"));
    to = static_cast<int>(list.list[0].n);
    return true;
  };
  const int rank = operands.empty() ? 0 : operands[0].dims().rank;
  if (card_name == "Sum" || card_name == "Mean" || card_name == "Max" || card_name == "Min" || card_name == "Size" ||
      card_name == "ArgMax") {
    int mask = 0;
    const bool arg = card_name == "ArgMax";
    if (!axes_of(i, *m.tensor(arg ? "axis" : "axes"), rank, mask, false)) return false;
    words = {mask, flag("keep")};
    if (card_name == "Size") words.push_back(static_cast<int>(type_of(i, "DstT")));
  } else if (card_name == "Cast") {
    words = {static_cast<int>(type_of(i, "DstT"))};
  } else if (card_name == "MatMul") {
    if (form == "MatMul" && (rank > 2 || operands[1].dims().rank > 2)) refuse(i, "takes matrices");
    words = {flag("transpose_a"), flag("transpose_b")};
  } else if (card_name == "Reshape" || card_name == "BroadcastTo") {
    numbers list;
    if (!whole_numbers(i, *m.tensor(card_name == "Reshape" ? "to" : "shape"), list)) return false;
    if (list.list.size() > max_rank) refuse(i, "has more than 6 extents", status::unimplemented);
    // An extent of -1 takes the rest of the elements: a multiple of the batch, if their number is one.
    std::int64_t known = 1;
    bool batched = false;
    int open = 0;
    for (const number& n : list.list) {
      if (!n.batch && n.n == -1 && card_name == "Reshape")
        ++open;
      else if (to_extent(*this, i, n) == 0 || __builtin_mul_overflow(known, n.n, &known))
        refuse(i, "its extents are too large");
      batched = batched || n.batch;
    }
    const std::int64_t all = count(operands[0].dims());
    if (open > 1 || (open == 1 && (std::abs(all) % known != 0 || (batched && all > 0))))
      refuse(i, text("an extent of -1 cannot be found for ", to_text(operands[0].dims())));
    shape s;
    for (const number& n : list.list)
      if (!n.batch && n.n == -1)
        s.push(to_extent(*this, i, {std::abs(all) / known, all < 0 && !batched}));
      else
        s.push(to_extent(*this, i, n));
    // A constant in the place of the batch means, in TensorFlow, the batch of this one size.
    take(to_attr(s));
  } else if (card_name == "Transpose") {
    numbers list;
    if (!whole_numbers(i, *m.tensor("perm"), list)) return false;
    if (static_cast<int>(list.list.size()) != rank) refuse(i, text("its axes are not those of rank ", rank));
    words.assign(max_rank, 0);
    for (std::size_t k = 0; k < list.list.size(); ++k) {
      if (list.list[k].batch || list.list[k].n < 0 || list.list[k].n >= rank)
        refuse(i, "an axis is outside of its rank");
      words[k] = static_cast<int>(list.list[k].n);
    }
  } else if (card_name == "Slice") {
    numbers begin, size;
    if (!whole_numbers(i, *m.tensor("begin"), begin) || !whole_numbers(i, *m.tensor("size"), size)) return false;
    if (static_cast<int>(begin.list.size()) != rank || begin.list.size() != size.list.size())
      refuse(i, text("its begin and size are not those of rank ", rank));
    words.assign(2 * max_rank, 0);
    for (std::size_t k = 0; k < begin.list.size(); ++k) {
      const int n = operands[0].dims().dims[k];
      const number from = begin.list[k], many = size.list[k];
      if (from.batch || from.n < 0 || from.n > most_extent || many.n < -1 || many.n > most_extent)
        refuse(i, "its begin and size do not fit");
      words[k] = static_cast<int>(from.n);
      words[max_rank + k] =
          many.n == -1 ? n - static_cast<int>(n < 0 ? 0 : from.n) : static_cast<int>(many.batch ? -many.n : many.n);
    }
  } else if (card_name == "PadV2") {
    const auto frame = whole_numbers_in(constant_of(i, *m.tensor("paddings")));
    if (frame.size() != 2 * static_cast<std::size_t>(rank)) refuse(i, "its paddings are not [rank, 2]");
    words.assign(2 * max_rank, 0);
    for (std::size_t k = 0; k < frame.size(); ++k) {
      if (frame[k] < 0 || frame[k] > most_extent) refuse(i, text("a padding of ", frame[k]));
      words[(k % 2) * max_rank + k / 2] = static_cast<int>(frame[k]);
    }
  } else if (card_name == "ConcatV2") {
    int axis = 0;
    if (!one("axis", axis)) return false;
    words = {axis < 0 ? axis + rank : axis};
    if (operands.size() > static_cast<std::size_t>(max_pieces))
      refuse(i, text("joins ", operands.size(), " tensors, this library at most ", max_pieces, " at once"),
             status::unimplemented);
  } else if (card_name == "Range") {
    int n = 0;
    if (!one("count", n)) return false;
    words = {n, static_cast<int>(type_of(i, "DstT"))};
  } else if (card_name == "OneHot") {
    int depth = 0;
    if (!one("depth", depth)) return false;
    words = {depth};
  } else if (card_name == "RowsToDense") {
    int rows = 0;
    if (!one("rows", rows)) return false;
    if (rank == 0) refuse(i, "takes rows");
    shape s = operands[0].dims();
    s.dims[0] = rows;
    take(to_attr(s));
  } else if (card_name.starts_with("LayerNorm")) {
    const tensor_def& e = constant_of(i, *m.tensor("epsilon"));
    double epsilon = 0;
    with_element_type(e.type, [&]<class T>() {
      T x{};
      if (e.content.size() == sizeof x) std::memcpy(&x, e.content.data(), sizeof x);
      if constexpr (std::is_floating_point_v<T>) epsilon = static_cast<double>(x);
    });
    const bool grads = card_name == "LayerNormParameterGrad";
    take(layer_norm_attr{grads || form.find("gamma") != form.npos,
                         grads || form.find("beta") != form.npos || card_name == "LayerNormGrad",
                         std::bit_cast<std::array<int, 2>>(epsilon)});
  } else if (card_name.starts_with("Attention")) {
    const auto apart = whole_numbers_in(constant_of(i, *m.tensor("apart")));
    if (apart.size() != 5 || apart[3] <= 0 || apart[3] > most_extent) refuse(i, "its heads are not known");
    attention_attr a{static_cast<int>(apart[3]), form.ends_with("causal")};
    // The op that made the weights has the attribute whether they were masked.
    for (const value& v : operands)
      if (const node& n = g_->nodes[v ? v.id : 0]; v && n.op == &cards::attention_weights)
        a.causal = from_words<attention_attr>(g_->ints.first + n.attr).causal;
    take(a);
  } else if (has_windows(card_name)) {
    return window_words(i, m, card_name, operands, words);
  }
  return true;
}

GRADUS_BODY bool import_words::window_words(int i, const pattern_match& m, std::string_view card_name,
                                            const std::vector<value>& operands, std::vector<int>& words) {
  const auto list = [&](std::string_view name) {
    const attr_value* a = m.attr(name);
    const auto* l = a == nullptr ? nullptr : a->get_if<std::vector<std::int64_t>>();
    if (l == nullptr || l->size() != 4 || (*l)[0] != 1 || (*l)[3] != 1 || (*l)[1] < 1 || (*l)[2] < 1 ||
        (*l)[1] > 1 << 15 || (*l)[2] > 1 << 15)
      refuse(i, text("its ", name, " are not [1, height, width, 1], which this library has alone"),
             status::unimplemented);
    return std::pair{static_cast<int>((*l)[1]), static_cast<int>((*l)[2])};
  };
  const auto word = [&](std::string_view name) {
    const attr_value* a = m.attr(name);
    const auto* s = a == nullptr ? nullptr : a->get_if<std::string>();
    return s == nullptr ? std::string_view() : std::string_view(*s);
  };
  if (word("format") != "NHWC")
    refuse(i, text("the format \"", word("format"), "\"; this library has NHWC alone"), status::unimplemented);
  if (word("padding") != "SAME" && word("padding") != "VALID")
    refuse(i, text("the padding \"", word("padding"), "\"; this library has SAME and VALID"), status::unimplemented);
  if (m.attr("dilations") != nullptr && list("dilations") != std::pair{1, 1})
    refuse(i, "its dilations are not 1, which this library has alone", status::unimplemented);
  for (const value& v : operands)
    if (v.dims().rank != 4) refuse(i, text("takes tensors of rank 4, got ", to_text(v.dims())));
  window_attr a{1, 1, 1, 1, word("padding") == "SAME", 0, 0};
  std::tie(a.sh, a.sw) = list("strides");
  shape s;
  if (const tensor_place* t = m.tensor("shape"); t != nullptr) {
    if (!shape_numbers(i, *t, s)) return false;
    if (s.rank != 4 || s[1] < 1 || s[2] < 1) refuse(i, "its shape is not that of images or filters");
  }
  const shape& x = operands[0].dims();
  if (card_name == "Conv2D" || card_name == "DepthwiseConv2dNative") {
    a.kh = operands[1].dims()[0], a.kw = operands[1].dims()[1];
  } else if (card_name == "Conv2DBackpropInput") {  // of filters [height, out, width, in]
    a.kh = x[0], a.kw = x[2], a.h = s[1], a.w = s[2];
  } else if (card_name == "DepthwiseConv2dNativeBackpropInput") {
    a.kh = x[0], a.kw = x[1], a.h = s[1], a.w = s[2];
  } else if (card_name.ends_with("BackpropFilter")) {
    a.kh = s[0], a.kw = s[1], a.h = x[1], a.w = x[2];
  } else {
    std::tie(a.kh, a.kw) = list("window");
    if (card_name == "AvgPoolGrad") a.h = s[1], a.w = s[2];
  }
  const auto w = to_words(a);
  words.assign(w.begin(), w.end());
  return true;
}

// For an op that is several nodes in TensorFlow: returns true if the constants among them are those that the op is
// written with, false if it waits for needs_. Refuses other constants.
GRADUS_BODY bool import_words::as_written(int i, const pattern_match& m, value v) {
  const node n = g_->nodes[v.id];
  shown_node s;
  s.op = n.op->name, s.type = n.type, s.dims = n.dims, s.source = &n;
  std::string formula(n.op->name);
  const shape first = n.inputs > 0 ? g_->nodes[g_->edges[n.first]].dims : shape();
  const tensorflow_settings settings = tensorflow_settings_of(s, g_->ints.first + n.attr, first, formula);
  for (const auto& [name, place] : m.tensors) {
    const auto found =
        std::find_if(settings.begin(), settings.end(), [&, &key = name](const auto& p) { return p.first == key; });
    bool same = found != settings.end();
    const auto* whole = same ? found->second.get_if<tensor_def>() : nullptr;
    if (whole != nullptr) {
      const tensor_def& c = constant_of(i, place);
      same = c.type == whole->type && c.content == whole->content;
    } else if (same) {
      numbers got;
      if (!whole_numbers(i, place, got)) return false;
      std::vector<number> wanted;
      if (const auto* list = found->second.get_if<std::vector<std::int64_t>>())
        for (const std::int64_t x : *list) wanted.push_back({x, false});
      else if (const auto* one = found->second.get_if<std::int64_t>())
        wanted.push_back({*one, false});
      else if (found->second.get_if<shape_def>() != nullptr)
        for (int k = 0; k < n.dims.rank; ++k)
          wanted.push_back({std::abs(std::int64_t{n.dims.dims[k]}), n.dims.dims[k] < 0});
      same = got.list == wanted;
    }
    if (!same)
      refuse(i, text("stands for ", m.what->formula->name, ", but \"", index_.name_of(place),
                     "\" is not what that is written with"));
  }
  return true;
}

}  // namespace gradus::detail
