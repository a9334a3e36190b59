// Training steps of MLPs and convolutions whose shapes are drawn by a seed, beside other libraries in the same process
// on one thread: libtorch, Eigen and oneDNN, as far as they are installed. What is not, is named and left out.
// takes: onednn torch
//
//   bench_drawn_models [seed [MLPs [convolutions [3x3s]]]]      without a seed others each time; 40, 40 and 0
//
// The shapes are read when it runs, so ours is interpreted: a stepper on an interpreted model, a session for the
// convolutions. All have subnormal numbers flushed to zero. OpenBLAS, which libtorch uses, may need OPENBLAS_CORETYPE
// (COOPERLAKE, SKYLAKEX, HASWELL, ZEN); oneDNN takes the processor's widest registers unless DNNL_MAX_CPU_ISA=AVX2 says
// otherwise.
//
// MLPs: 1 to 4 hidden layers of 8 to 1024 units with relu, as many inputs, 2 to 100 classes, cross-entropy, batches of
// 1 to 256, gradient descent, momentum, Adam or RMSProp. A step is forward, backward, update. Eigen's is written by
// hand; libtorch's is modules, autograd and its optimizers.
//
// Convolutions: 1 to 128 channels in and out, images of 8 to 64, kernels of 1, 3, 5, strides of 1 and 2, zeros around
// the image or none, forward and both gradients. An image's extent is odd where its stride is 2, so that the zeros are
// alike on both sides, as libtorch has them. libtorch appears with both of its layouts; oneDNN with the layouts that it
// prefers, what it has to reorder for them not counted.
//
// 3x3s: convolutions of 3x3 by steps of 1 with 16 to 128 channels, half of them with 64 on both sides, ours by direct
// sums and then by winograd<4>.
//
// All take turns; a figure is the median of its turns. The first results are compared: losses of five steps, and every
// number of a convolution and its gradients, to 1e-4. Shares are those of limits that are sampled between the turns:
// FLOPs at the peak of one processor; and the least bytes that a step has to move (parameters and slots read and
// written once; a convolution's six tensors once) at the rate of the nearest level that holds them.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // g++ 12 says it of its own AVX-512 functions, in Eigen
#endif
#include "training.hpp"
#include "yardstick.hpp"

#include <gradus/cpu/winograd.hpp>
#include <gradus/ops/conv.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/run/session.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <gradus/update/rules/rmsprop.hpp>

#if __has_include(<eigen3/Eigen/Core>)
#include <eigen3/Eigen/Core>
#define HAS_EIGEN 1
#else
#define HAS_EIGEN 0
#endif
#if defined(GRADUS_TAKES_ONEDNN) && __has_include(<oneapi/dnnl/dnnl.hpp>)
#include <oneapi/dnnl/dnnl.hpp>
#define HAS_ONEDNN (DNNL_VERSION_MAJOR == 2)  // its interface of convolutions is another one in 3
#else
#define HAS_ONEDNN 0
#endif
#if defined(GRADUS_TAKES_TORCH)
#include <torch/torch.h>
#define HAS_TORCH 1
#else
#define HAS_TORCH 0
#endif

#include <dlfcn.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

using yardstick::contender;
using yardstick::drawn;

enum rule_kind { descent, with_momentum, with_adam, with_rmsprop };
constexpr const char* rule_names[] = {"SGD", "momentum", "Adam", "RMSProp"};
constexpr int slots_of[] = {0, 1, 2, 1};
constexpr double rates[] = {1e-2, 1e-3, 1e-4, 1e-5}, momentum_decay = 0.9, rms_decay = 0.99, tiny = 1e-8;
constexpr int compared_steps = 5;

struct mlp_shape {
  std::vector<int> widths;
  int batch;
  rule_kind rule;

  double parameters() const {
    double n = 0;
    for (std::size_t i = 0; i + 1 < widths.size(); ++i) n += (widths[i] + 1.0) * widths[i + 1];
    return n;
  }
  double flops() const {
    double n = 0;
    for (std::size_t i = 0; i + 1 < widths.size(); ++i) n += (i == 0 ? 4.0 : 6.0) * batch * widths[i] * widths[i + 1];
    return n;
  }
  double held_bytes() const { return 4 * parameters() * (1 + slots_of[rule]); }
  std::string text() const {
    std::string s = std::to_string(widths[0]);
    for (std::size_t i = 1; i < widths.size(); ++i) s += gradus::text("-", widths[i]);
    return s + gradus::text(" batch ", batch, " ", rule_names[rule]);
  }
};
mlp_shape draw_mlp(drawn& r) {
  mlp_shape s;
  s.widths.push_back(r.scaled(8, 1024));
  for (int depth = r.between(1, 4); depth > 0; --depth) s.widths.push_back(r.scaled(8, 1024));
  s.widths.push_back(r.scaled(2, 100));
  s.batch = r.scaled(1, 256);
  s.rule = static_cast<rule_kind>(r.below(4));
  return s;
}

// Where a program begins: each layer's weights [in, out] and biases; and the batches.
struct start {
  std::vector<std::vector<float>> weights, biases;
  std::function<const float*(std::size_t)> inputs;
  std::function<const std::int32_t*(std::size_t)> labels;
};
constexpr std::size_t batch_count = training::batches::count;

// A peer: step(i) makes a step on batch i and returns its loss.
using stepping = std::function<float(std::size_t)>;

#if HAS_EIGEN
class mlp_by_eigen {
  using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using numbers = Eigen::ArrayXf;
  struct tensor {
    matrix value, gradient;
    numbers slot[2];
    explicit tensor(matrix v) : value(std::move(v)), gradient(matrix::Zero(value.rows(), value.cols())) {
      for (numbers& s : slot) s = numbers::Zero(value.size());
    }
  };
  struct layer {
    tensor weight, bias;
    matrix y, dy;
  };

public:
  mlp_by_eigen(const mlp_shape& s, const start& at) : shape_(s), at_(at) {
    for (std::size_t i = 0; i + 1 < s.widths.size(); ++i)
      layers_.push_back({tensor(Eigen::Map<const matrix>(at.weights[i].data(), s.widths[i], s.widths[i + 1])),
                         tensor(Eigen::Map<const matrix>(at.biases[i].data(), 1, s.widths[i + 1])),
                         matrix::Zero(s.batch, s.widths[i + 1]), matrix::Zero(s.batch, s.widths[i + 1])});
  }
  float step(std::size_t which) {
    const Eigen::Map<const matrix> x(at_.inputs(which), shape_.batch, shape_.widths[0]);
    const std::int32_t* const label = at_.labels(which);
    const bool one = shape_.batch == 1;  // as vectors, for which Eigen has code of its own
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      layer& l = layers_[i];
      const auto forward = [&](const auto& in) {
        if (one)
          l.y.row(0).noalias() = in.row(0) * l.weight.value;
        else
          l.y.noalias() = in * l.weight.value;
      };
      i == 0 ? forward(x) : forward(layers_[i - 1].y);
      l.y.rowwise() += l.bias.value.row(0);
      if (i + 1 < layers_.size()) l.y = l.y.cwiseMax(0.0f);
    }
    layer& last = layers_.back();
    float loss = 0;
    const auto count = static_cast<float>(shape_.batch);
    for (Eigen::Index r = 0; r < shape_.batch; ++r) {
      const float most = last.y.row(r).maxCoeff();
      last.dy.row(r) = (last.y.row(r).array() - most).exp();
      const float sum = last.dy.row(r).sum();
      loss += std::log(sum) + most - last.y(r, label[r]);
      last.dy.row(r) /= sum * count;
      last.dy(r, label[r]) -= 1.0f / count;
    }
    power1_ *= 0.9, power2_ *= 0.999;
    for (std::size_t i = layers_.size(); i-- > 0;) {
      layer& l = layers_[i];
      const auto backward = [&](const auto& in) {
        if (one)
          l.weight.gradient.noalias() = in.row(0).transpose() * l.dy.row(0);
        else
          l.weight.gradient.noalias() = in.transpose() * l.dy;
      };
      i == 0 ? backward(x) : backward(layers_[i - 1].y);
      l.bias.gradient = l.dy.colwise().sum();
      if (i != 0) {
        layer& before = layers_[i - 1];
        if (one)
          before.dy.row(0).noalias() = l.dy.row(0) * l.weight.value.transpose();
        else
          before.dy.noalias() = l.dy * l.weight.value.transpose();
        before.dy = (before.y.array() > 0).select(before.dy, 0.0f);
      }
      update(l.weight), update(l.bias);
    }
    return loss / count;
  }

private:
  mlp_shape shape_;
  const start& at_;
  std::vector<layer> layers_;
  double power1_ = 1, power2_ = 1;

  void update(tensor& t) const {
    Eigen::Map<numbers> p(t.value.data(), t.value.size());
    const Eigen::Map<const numbers> g(t.gradient.data(), t.gradient.size());
    const auto rate = static_cast<float>(rates[shape_.rule]);
    if (shape_.rule == descent) {
      p -= rate * g;
    } else if (shape_.rule == with_momentum) {
      t.slot[0] = static_cast<float>(momentum_decay) * t.slot[0] + g;
      p -= rate * t.slot[0];
    } else if (shape_.rule == with_adam) {
      const auto alpha = static_cast<float>(rates[with_adam] * std::sqrt(1 - power2_) / (1 - power1_));
      t.slot[0] = 0.9f * t.slot[0] + 0.1f * g;
      t.slot[1] = 0.999f * t.slot[1] + 0.001f * g.square();
      p -= alpha * t.slot[0] / (t.slot[1].sqrt() + static_cast<float>(tiny));
    } else {
      t.slot[0] = static_cast<float>(rms_decay) * t.slot[0] + static_cast<float>(1 - rms_decay) * g.square();
      p -= rate * g / (t.slot[0].sqrt() + static_cast<float>(tiny));
    }
  }
};
#endif

#if HAS_TORCH
class mlp_by_torch {
public:
  mlp_by_torch(const mlp_shape& s, const start& at) : shape_(s) {
    for (std::size_t i = 0; i + 1 < s.widths.size(); ++i) {
      torch::nn::Linear l(s.widths[i], s.widths[i + 1]);
      const torch::NoGradGuard no_gradients;
      l->weight.copy_(torch::from_blob(const_cast<float*>(at.weights[i].data()), {s.widths[i], s.widths[i + 1]}).t());
      l->bias.copy_(torch::from_blob(const_cast<float*>(at.biases[i].data()), {s.widths[i + 1]}));
      model_->push_back(l);
      if (i + 2 < s.widths.size()) model_->push_back(torch::nn::ReLU());
    }
    for (std::size_t i = 0; i < batch_count; ++i) {
      inputs_.push_back(torch::from_blob(const_cast<float*>(at.inputs(i)), {s.batch, s.widths[0]}));
      labels_.push_back(
          torch::from_blob(const_cast<std::int32_t*>(at.labels(i)), {s.batch}, torch::kInt).to(torch::kLong));
    }
    const auto all = model_->parameters();
    using namespace torch::optim;
    if (s.rule == descent)
      optimizer_ = std::make_unique<SGD>(all, SGDOptions(rates[descent]));
    else if (s.rule == with_momentum)
      optimizer_ = std::make_unique<SGD>(all, SGDOptions(rates[with_momentum]).momentum(momentum_decay));
    else if (s.rule == with_adam)
      optimizer_ = std::make_unique<Adam>(all, AdamOptions(rates[with_adam]));
    else
      optimizer_ = std::make_unique<RMSprop>(all, RMSpropOptions(rates[with_rmsprop]).alpha(rms_decay).eps(tiny));
  }
  float step(std::size_t which) {
    ++count_;
    if (shape_.rule == with_adam && count_ <= compared_steps) {  // its epsilon stands beside the corrected root
      auto& options = static_cast<torch::optim::AdamOptions&>(optimizer_->param_groups()[0].options());
      options.eps(tiny / std::sqrt(1 - std::pow(0.999, count_)));
    }
    optimizer_->zero_grad();
    const auto loss = torch::nn::functional::cross_entropy(model_->forward(inputs_[which]), labels_[which]);
    loss.backward();
    optimizer_->step();
    return loss.item<float>();
  }

private:
  mlp_shape shape_;
  torch::nn::Sequential model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::vector<torch::Tensor> inputs_, labels_;
  int count_ = 0;
};
#endif

struct line {
  double ratio = 0, of_flops = 0, of_limit = 0;
  std::string text;
};
// The first contender is ours.
line line_of(const std::string& shape, const std::vector<contender>& all, double flops, double bytes, double held,
             const yardstick::sampler& machine) {
  const double ours = yardstick::median(all[0].turns);
  const int level = yardstick::memories::level_of(held);
  const double computing = flops / machine.fma() * 1e-9, moving = bytes / machine.rewrite(level) * 1e-9;
  line l{0, computing / ours, std::max(computing, moving) / ours, {}};
  char text[512];
  int at = std::snprintf(text, sizeof text, "%-48s %9.4f ms  %3.0f %% of FLOPs, %3.0f %% of its limit (%s)",
                         shape.c_str(), 1e3 * ours, 100 * l.of_flops, 100 * l.of_limit,
                         computing >= moving ? "FLOPs" : yardstick::name_of(level));
  for (std::size_t i = 1; i < all.size(); ++i) {
    const double other = yardstick::median(all[i].turns);
    l.ratio = i == 1 ? other / ours : std::min(l.ratio, other / ours);
    at += std::snprintf(text + at, sizeof text - static_cast<std::size_t>(at), "  %s %.2f", all[i].name.c_str(),
                        other / ours);
  }
  l.text = text;
  return l;
}

[[noreturn]] void differ(const std::string& shape, const std::string& who, const std::string& what, double found,
                         double expected) {
  std::printf("%s: %s has %s %.9g, ours %.9g\n", shape.c_str(), who.c_str(), what.c_str(), found, expected);
  std::exit(1);
}

template <class Rule>
line compare_mlp(const mlp_shape& s, const Rule& rule, yardstick::sampler& machine) {
  using namespace gradus;
  using model = training::interpreted;
  model net{[&](graph& g) {
    const auto x = g.placeholder("x", {batch, s.widths[0]}), y = g.placeholder("y", {batch}, int32);
    auto h = x;
    for (std::size_t i = 1; i < s.widths.size(); ++i) {
      const std::string name = text("layer", i);
      h = dense(h, {.units = s.widths[i], .name = name});
      if (i + 1 < s.widths.size()) h = relu(h);
    }
    return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(h, y)), .metrics = {}, .predictions = {}};
  }};
  stepper<model, decltype(composed{rule}), cpu<fast>, serial, subnormals::flush> trainer(std::move(net),
                                                                                         composed{rule});
  trainer.allocate();
  trainer.initialize(1);
  training::batches data(trainer, trainer.template bound<mode::train>(s.batch), s.batch,
                         static_cast<std::uint32_t>(s.widths.back()));
  start at;
  for (std::size_t i = 1; i < s.widths.size(); ++i)
    for (const bool is_weight : {true, false}) {
      const std::string name = text("layer", i, is_weight ? "/kernel" : "/bias");
      const auto which = static_cast<std::size_t>(trainer.variables().find(name));
      const auto* const from = reinterpret_cast<const float*>(trainer.variables().value(which));
      (is_weight ? at.weights : at.biases).emplace_back(from, from + trainer.variables().info(which).size());
    }
  at.inputs = [&](std::size_t i) {
    return reinterpret_cast<const float*>(data.columns[0].all.data() + i * data.columns[0].apart);
  };
  at.labels = [&](std::size_t i) {
    return reinterpret_cast<const std::int32_t*>(data.columns[1].all.data() + i * data.columns[1].apart);
  };
  const tensor_view loss = trainer.template output_of<mode::train>(output::loss);
  std::vector<float> losses;
  for (int i = 0; i < compared_steps; ++i) {
    data.feed();
    trainer.train_step();
    losses.push_back(*reinterpret_cast<const float*>(loss.data));
  }
  std::vector<contender> all{{"ours", [&] { data.feed(), trainer.train_step(); }}};
  [[maybe_unused]] const auto join = [&](const char* name, stepping step) {
    for (std::size_t i = 0; i < losses.size(); ++i)
      if (const float theirs = step(i); !(std::abs(theirs - losses[i]) <= 1e-4f * std::abs(losses[i])))
        differ(s.text(), name, gradus::text("the loss ", i), theirs, losses[i]);
    all.push_back({name, [step, i = std::size_t{0}]() mutable { step(i++ % batch_count); }});
  };
#if HAS_TORCH
  join("libtorch", [peer = std::make_shared<mlp_by_torch>(s, at)](std::size_t i) { return peer->step(i); });
#endif
#if HAS_EIGEN
  join("Eigen", [peer = std::make_shared<mlp_by_eigen>(s, at)](std::size_t i) { return peer->step(i); });
#endif
  take_turns(all, machine, 31);
  return line_of(s.text(), all, s.flops(), 2 * s.held_bytes(), s.held_bytes(), machine);
}
line compare_mlp(const mlp_shape& s, yardstick::sampler& machine) {
  using namespace gradus;
  if (s.rule == descent) return compare_mlp(s, gradient_descent{.rate = rates[descent]}, machine);
  if (s.rule == with_momentum)
    return compare_mlp(s, momentum{.rate = rates[with_momentum], .decay = momentum_decay}, machine);
  if (s.rule == with_adam) return compare_mlp(s, adam{.rate = rates[with_adam]}, machine);
  return compare_mlp(
      s, rmsprop{.rate = rates[with_rmsprop], .decay = rms_decay, .epsilon = tiny * tiny, .initial_rms = 0}, machine);
}

struct conv_shape {
  int images, h, w, in, out, kernel, stride;
  bool same;

  int before() const { return same ? (kernel - 1) / 2 : 0; }
  int places(int extent) const { return (extent + 2 * before() - kernel) / stride + 1; }
  double flops() const { return 6.0 * images * places(h) * places(w) * out * in * kernel * kernel; }
  double bytes() const {
    return 8.0 *
           (1.0 * images * h * w * in + 1.0 * images * places(h) * places(w) * out + 1.0 * kernel * kernel * in * out);
  }
  std::string text() const {
    return gradus::text(images, " x ", h, "x", w, "x", in, " to ", out, ", ", kernel, "x", kernel,
                        stride == 1 ? "" : " by 2", same ? " same" : " valid");
  }
};
conv_shape draw_conv(drawn& r) {
  conv_shape s{};
  s.in = r.scaled(1, 128), s.out = r.scaled(1, 128), s.h = r.scaled(8, 64), s.w = r.scaled(8, 64);
  s.kernel = 1 + 2 * r.below(3), s.stride = r.between(1, 2), s.same = r.below(3) != 0;
  if (s.stride == 2) s.h = (s.h - 1) | 1, s.w = (s.w - 1) | 1;
  s.images = r.scaled(1, 64);
  while (s.images > 1 && s.flops() > 4e9) s.images /= 2;  // so that a row takes a second or two
  return s;
}

conv_shape draw_three_by_three(drawn& r) {
  conv_shape s = draw_conv(r);
  s.kernel = 3, s.stride = 1;
  if (r.below(2) != 0)
    s.in = s.out = 64;
  else
    s.in = r.scaled(16, 128), s.out = r.scaled(16, 128);
  s.images = r.scaled(1, 64);
  while (s.images > 1 && s.flops() > 4e9) s.images /= 2;
  return s;
}

// What a convolution gives: y, dx, dw, in our layouts [n, h, w, c] and [kh, kw, in, out].
struct results {
  std::vector<float> y, dx, dw;
};
void check(const conv_shape& s, const std::string& who, const results& ours, const results& theirs) {
  const auto one = [&](const char* what, const std::vector<float>& a, const std::vector<float>& b) {
    float most = 0;
    for (const float v : a) most = std::max(most, std::abs(v));
    for (std::size_t i = 0; i < a.size(); ++i)
      if (!(std::abs(a[i] - b[i]) <= 1e-4f * most)) differ(s.text(), who, what, b[i], a[i]);
  };
  one("a number of y", ours.y, theirs.y), one("a number of dx", ours.dx, theirs.dx);
  one("a number of dw", ours.dw, theirs.dw);
}

#if HAS_TORCH
class conv_by_torch {
public:
  conv_by_torch(const conv_shape& s, const float* x, const float* w, const float* dy, at::MemoryFormat layout)
      : stride_{s.stride, s.stride}, padding_{s.before(), s.before()} {
    const auto image = [&](const float* from, int h, int w, int c) {
      return torch::from_blob(const_cast<float*>(from), {s.images, h, w, c}).permute({0, 3, 1, 2}).clone(layout);
    };
    x_ = image(x, s.h, s.w, s.in), dy_ = image(dy, s.places(s.h), s.places(s.w), s.out);
    w_ = torch::from_blob(const_cast<float*>(w), {s.kernel, s.kernel, s.in, s.out}).permute({3, 2, 0, 1}).clone(layout);
  }
  void run() {
    const c10::InferenceMode no_gradients;
    const std::int64_t one[] = {1, 1}, none[] = {0, 0};
    y_ = at::conv2d(x_, w_, {}, stride_, padding_);
    std::tie(dx_, dw_, std::ignore) = at::convolution_backward(dy_, x_, w_, c10::nullopt, stride_, padding_, one, false,
                                                               none, 1, {true, true, false});
  }
  results get() {
    const auto all = [](const torch::Tensor& t, at::IntArrayRef order) {
      const auto in_order = t.permute(order).contiguous();
      return std::vector<float>(in_order.data_ptr<float>(), in_order.data_ptr<float>() + in_order.numel());
    };
    return {all(y_, {0, 2, 3, 1}), all(dx_, {0, 2, 3, 1}), all(dw_, {2, 3, 1, 0})};
  }

private:
  std::vector<std::int64_t> stride_, padding_;
  torch::Tensor x_, w_, dy_, y_, dx_, dw_;
};
#endif

#if HAS_ONEDNN
class conv_by_onednn {
  using memory = dnnl::memory;
  using tag = memory::format_tag;

public:
  conv_by_onednn(const conv_shape& s, const float* x, const float* w, const float* dy) {
    const memory::dims image{s.images, s.in, s.h, s.w}, filters{s.out, s.in, s.kernel, s.kernel},
        result{s.images, s.out, s.places(s.h), s.places(s.w)}, stride{s.stride, s.stride},
        around{s.before(), s.before()};
    const auto any = [](const memory::dims& d) { return memory::desc(d, memory::data_type::f32, tag::any); };
    constexpr auto direct = dnnl::algorithm::convolution_direct;
    const dnnl::convolution_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, direct, any(image), any(filters), any(result), stride, around, around},
        engine_);
    const dnnl::convolution_backward_data::primitive_desc data(
        {direct, any(image), any(filters), any(result), stride, around, around}, engine_, forward);
    const dnnl::convolution_backward_weights::primitive_desc weights(
        {direct, any(image), any(filters), any(result), stride, around, around}, engine_, forward);
    const auto put = [&](const float* from, const memory::dims& d, tag how, const memory::desc& where) {
      memory to(where, engine_);
      memory plain({d, memory::data_type::f32, how}, engine_, const_cast<float*>(from));
      dnnl::reorder(plain, to).execute(stream_, plain, to);
      stream_.wait();
      return to;
    };
    const memory y(forward.dst_desc(), engine_), dx(data.diff_src_desc(), engine_),
        dw(weights.diff_weights_desc(), engine_);
    calls_.push_back({dnnl::convolution_forward(forward),
                      {{DNNL_ARG_SRC, put(x, image, tag::nhwc, forward.src_desc())},
                       {DNNL_ARG_WEIGHTS, put(w, filters, tag::hwio, forward.weights_desc())},
                       {DNNL_ARG_DST, y}}});
    calls_.push_back({dnnl::convolution_backward_data(data),
                      {{DNNL_ARG_DIFF_DST, put(dy, result, tag::nhwc, data.diff_dst_desc())},
                       {DNNL_ARG_WEIGHTS, put(w, filters, tag::hwio, data.weights_desc())},
                       {DNNL_ARG_DIFF_SRC, dx}}});
    calls_.push_back({dnnl::convolution_backward_weights(weights),
                      {{DNNL_ARG_SRC, put(x, image, tag::nhwc, weights.src_desc())},
                       {DNNL_ARG_DIFF_DST, put(dy, result, tag::nhwc, weights.diff_dst_desc())},
                       {DNNL_ARG_DIFF_WEIGHTS, dw}}});
    results_ = {{y, result, tag::nhwc}, {dx, image, tag::nhwc}, {dw, filters, tag::hwio}};
  }
  void run() {
    for (auto& c : calls_) c.first.execute(stream_, c.second);
    stream_.wait();
  }
  results get() {
    const auto all = [&](result_of& r) {
      std::size_t n = 1;
      for (const auto d : r.dims) n *= static_cast<std::size_t>(d);
      std::vector<float> to(n);
      memory plain({r.dims, memory::data_type::f32, r.how}, engine_, to.data());
      dnnl::reorder(r.at, plain).execute(stream_, r.at, plain);
      stream_.wait();
      return to;
    };
    return {all(results_[0]), all(results_[1]), all(results_[2])};
  }

private:
  struct result_of {
    memory at;
    memory::dims dims;
    tag how;
  };
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::vector<std::pair<dnnl::primitive, std::unordered_map<int, memory>>> calls_;
  std::vector<result_of> results_;
};
#endif

template <class Arithmetic = gradus::fast>
line compare_conv(const conv_shape& s, yardstick::sampler& machine) {
  using namespace gradus;
  graph g;
  const auto tensor = [&](const char* name, const shape& dims) {
    return g.variable(name, dims, {.init = random_uniform(-1, 1)});
  };
  const auto x = tensor("x", {s.images, s.h, s.w, s.in}), w = tensor("w", {s.kernel, s.kernel, s.in, s.out}),
             dy = tensor("dy", {s.images, s.places(s.h), s.places(s.w), s.out});
  const auto y = conv2d(x, w, {.strides = s.stride, .padding = s.same ? padding::same : padding::valid});
  const value of[] = {y}, by[] = {x, w}, upstream[] = {dy};
  const auto d = gradients(g, of, by, {.grad_ys = upstream});
  const std::vector<fetch> wanted{y, d[0].dense, d[1].dense};
  session<cpu<Arithmetic>> ours{g};
  ours.initialize(1);
  const auto values = [](const auto& t) {
    const auto all = t.template as<float>();
    return std::vector<float>(all.begin(), all.end());
  };
  const auto given = [&](const char* name) { return values(ours.variable(name)); };
  const std::vector<float> vx = given("x"), vw = given("w"), vdy = given("dy");
  results first;
  {
    const auto r = ours.run(wanted);
    first = {values(r[0]), values(r[1]), values(r[2])};
  }
  std::vector<contender> all{{"ours", [&] { ours.run(wanted); }}};
  [[maybe_unused]] const auto join = [&](const char* name, auto peer) {
    peer->run();
    check(s, name, first, peer->get());
    all.push_back({name, [peer] { peer->run(); }});
  };
#if HAS_TORCH
  join("libtorch", std::make_shared<conv_by_torch>(s, vx.data(), vw.data(), vdy.data(), at::MemoryFormat::Contiguous));
  join("channels_last",
       std::make_shared<conv_by_torch>(s, vx.data(), vw.data(), vdy.data(), at::MemoryFormat::ChannelsLast));
#endif
#if HAS_ONEDNN
  join("oneDNN", std::make_shared<conv_by_onednn>(s, vx.data(), vw.data(), vdy.data()));
#endif
  take_turns(all, machine, 31);
  return line_of(s.text(), all, s.flops(), s.bytes(), s.bytes(), machine);
}

void sum_up(const char* what, std::vector<line> lines) {
  if (lines.empty()) return;
  std::vector<double> ratios, flops, limits;
  for (const line& l : lines) {
    if (l.ratio > 0) ratios.push_back(l.ratio);
    flops.push_back(l.of_flops), limits.push_back(l.of_limit);
  }
  std::printf("\n%zu %s\n", lines.size(), what);
  yardstick::show("best of the others / ours", ratios);
  yardstick::show("share of the FLOP limit", flops);
  yardstick::show("share of its own limit", limits);
  const auto worst = [&](const char* by, double line::*of) {
    std::sort(lines.begin(), lines.end(), [&](const line& a, const line& b) { return a.*of < b.*of; });
    std::printf("least by %s:\n", by);
    for (std::size_t i = 0; i < lines.size() && i < 5; ++i) std::printf("  %s\n", lines[i].text.c_str());
  };
  if (!ratios.empty()) worst("ratio", &line::ratio);
  worst("share of its limit", &line::of_limit);
}

// One thread for each of the libraries that threads of their own.
void one_thread() {
  for (const char* name : {"omp_set_num_threads", "openblas_set_num_threads"})
    if (void* const set = dlsym(RTLD_DEFAULT, name)) reinterpret_cast<void (*)(int)>(set)(1);
#if HAS_TORCH
  at::set_num_threads(1);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t seed = argc > 1 ? static_cast<std::uint64_t>(std::atoll(argv[1])) : std::random_device()();
  const int mlps = argc > 2 ? std::atoi(argv[2]) : 40, convolutions = argc > 3 ? std::atoi(argv[3]) : 40,
            threes = argc > 4 ? std::atoi(argv[4]) : 0;
  one_thread();
  const gradus::subnormal_scope flushing(gradus::subnormal_mode::flush);  // of this thread, which all use
  std::printf("seed %llu, %zu bits, interpreted, beside%s%s%s; not here:%s%s%s\n",
              static_cast<unsigned long long>(seed), 32 * yardstick::number::width, HAS_TORCH ? " libtorch" : "",
              HAS_EIGEN ? " Eigen" : "", HAS_ONEDNN ? " oneDNN" : "", HAS_TORCH ? "" : " libtorch",
              HAS_EIGEN ? "" : " Eigen", HAS_ONEDNN ? "" : " oneDNN");
  yardstick::sampler machine;
  machine.take();
  drawn r{seed * 0x9E3779B97F4A7C15u + 1};
  std::vector<line> of_mlps, of_convolutions, directly, by_tiles;
  const auto row = [&](std::vector<line>& to, line l) {
    std::printf("%s\n", l.text.c_str());
    std::fflush(stdout);
    to.push_back(std::move(l));
    machine.take();
  };
  for (int i = 0; i < mlps; ++i) row(of_mlps, compare_mlp(draw_mlp(r), machine));
  for (int i = 0; i < convolutions; ++i) row(of_convolutions, compare_conv(draw_conv(r), machine));
  for (int i = 0; i < threes; ++i) {
    const conv_shape s = draw_three_by_three(r);
    row(directly, compare_conv(s, machine)), row(by_tiles, compare_conv<gradus::winograd<4>>(s, machine));
  }
  std::printf("\n");
  machine.print();
  sum_up("MLPs; a ratio above 1 means that ours is faster", of_mlps);
  sum_up("convolutions", of_convolutions);
  sum_up("convolutions of 3x3 by direct sums", directly);
  sum_up("convolutions of 3x3 by winograd<4>", by_tiles);
}
