#include <gradus/run/microbatch.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "models.hpp"

using namespace run_test;

namespace {
using clipped = decltype(composed{adam{}, clip_by_global_norm{1.0}});
using model = interpreted_model<cpu<fast>, ops<>, gating::op, true, true>;
using cut_stepper = stepper<model, clipped, cpu<fast>, serial, microbatch>;
const clipped update{adam{.rate = 0.01}, clip_by_global_norm{0.05}};

constexpr auto noisy = [](graph& g) {  // an mlp with dropout, whose masks differ from part to part
  auto x = g.placeholder("x", {batch, 13});
  auto label = g.placeholder("label", {batch}, int32);
  auto h = dropout(tanh(dense(x, {.units = 16, .name = "hidden"})), 0.25);
  auto logits = dense(h, {.units = 5, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, label)), .metrics = {}, .predictions = {}};
};

template <class Stepper>
bytes state_of(Stepper& s) {
  bytes out;
  for (std::size_t i = 0; i < s.variables().size(); ++i) {
    if (!s.variables().info(i).trainable) continue;
    take(out, s.variables().view(i));
    for (std::size_t k = 0; k < clipped::mirror_count; ++k) take(out, s.variables().mirror_view(k, i));
  }
  return out;
}
// Three steps of a batch of 24; the losses, then the state.
template <class Executor = serial, class Model>
bytes in_parts(Model m, std::int64_t parts, const Executor& executor = {}, summation how = summation::tree) {
  stepper<Model, clipped, cpu<fast>, Executor, microbatch> s(std::move(m), update, executor, microbatch{parts, how});
  s.allocate();
  s.initialize(7);
  bytes out;
  for (std::uint32_t i = 0; i < 3; ++i) {
    fill<decltype(s), mode::train>(s, 24, i + 1);
    s.train_step();
    take(out, s.template output_of<mode::train>(output::loss));
  }
  const bytes rest = state_of(s);
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}
template <class F>
std::string refusal_of(F f) {
  try {
    f();
  } catch (const error& e) {
    return e.what();
  }
  return {};
}
}  // namespace

TEST_CASE("parts give the gradient of the whole batch, and its loss, but for rounding") {
  stepper<model, clipped, cpu<fast>> whole(model{mlp}, update);
  cut_stepper parts(model{mlp}, update, serial{}, microbatch{6});
  whole.allocate(), parts.allocate();
  whole.initialize(7), parts.initialize(7);
  fill<decltype(whole), mode::train>(whole, 24, 3);
  fill<cut_stepper, mode::train>(parts, 24, 3);
  whole.train_step(), parts.train_step();
  CHECK(parts.gradient_norm() == doctest::Approx(whole.gradient_norm()).epsilon(1e-5));
  CHECK(parts.output_of<mode::train>(output::loss).as<float>()[0] ==
        doctest::Approx(whole.output_of<mode::train>(output::loss).as<float>()[0]).epsilon(1e-6));
  CHECK(parts.output_of<mode::train>(output::metric).as<float>()[0] ==
        doctest::Approx(whole.output_of<mode::train>(output::metric).as<float>()[0]).epsilon(1e-6));
  for (std::size_t i = 0; i < whole.variables().size(); ++i)
    for (std::size_t k = 0; k < whole.variables().info(i).size(); ++k) {
      const float* a = reinterpret_cast<const float*>(whole.variables().gradient(i));
      const float* b = reinterpret_cast<const float*>(parts.variables().gradient(i));
      CHECK(b[k] == doctest::Approx(a[k]).epsilon(1e-4).scale(0.01));
    }
  const memory_use a = whole.memory(), b = parts.memory();
  CHECK(b.activations < a.activations / 4);
  CHECK(b.variables == a.variables);
  CHECK(b.partial_sums >= 3 * b.gradients);
  CHECK(b.partial_sums < 3 * b.gradients + 4096);
  CHECK(a.all_tensors > a.activations);
}

TEST_CASE("one part is a step like any other") {
  stepper<model, clipped, cpu<fast>> s(model{noisy}, update);
  s.allocate();
  s.initialize(7);
  bytes out;
  for (std::uint32_t i = 0; i < 3; ++i) {
    fill<decltype(s), mode::train>(s, 24, i + 1);
    s.train_step();
    take(out, s.output_of<mode::train>(output::loss));
  }
  const bytes rest = state_of(s);
  out.insert(out.end(), rest.begin(), rest.end());
  CHECK(in_parts(model{noisy}, 1) == out);
}

TEST_CASE("compiled, interpreted, on threads: the same bits") {
  for (std::int64_t parts : {2, 3, 8}) {
    const bytes wanted = in_parts(model{noisy}, parts);
    CHECK(in_parts(compiled_model<noisy, cpu<fast>, gating::op, true, true>{}, parts) == wanted);
    using free_model = interpreted_model<cpu<fast>, ops<>, gating::op, true, false>;
    CHECK(in_parts(free_model{noisy}, parts, threads{.count = 3}) == wanted);
  }
}

TEST_CASE("in order: each part's gradients are added to the sum of those before it, with one array beside") {
  constexpr std::int64_t parts = 6, examples = 24;
  // One part after the other through a machine of their size, summed here.
  stepper<model, clipped, cpu<fast>> one(model{mlp}, update);
  cut_stepper s(model{mlp}, update, serial{}, microbatch{parts, in_order}),
      tree(model{mlp}, update, serial{}, microbatch{parts});
  one.allocate(), s.allocate(), tree.allocate();
  one.initialize(7), s.initialize(7), tree.initialize(7);
  fill<cut_stepper, mode::train>(s, examples, 3), fill<cut_stepper, mode::train>(tree, examples, 3);
  auto& from = s.bound<mode::train>(examples);
  auto& to = one.bound<mode::train>(examples / parts);
  const std::size_t floats = s.variables().trainable_bytes() / sizeof(float);
  std::vector<float> sum;
  for (std::int64_t k = 0; k < parts; ++k) {
    one.placeholders<mode::train>([&](placeholder_info p) {
      const auto n = static_cast<std::size_t>(count(resolve(p.dims, examples / parts))) * size_of(p.type);
      std::memcpy(to.address(p.node), from.address(p.node) + static_cast<std::size_t>(k) * n, n);
    });
    one.compute_gradients([](const named_gradient&) {});
    const float* const g = reinterpret_cast<const float*>(one.variables().gradient_base());
    if (k == 0) sum.assign(g, g + floats);
    for (std::size_t i = 0; k != 0 && i < floats; ++i) sum[i] += g[i];
  }
  s.sum_parts(0, parts, parts), tree.sum_parts(0, parts, parts);
  CHECK(std::memcmp(sum.data(), s.variables().gradient_base(), floats * sizeof(float)) == 0);
  CHECK(std::memcmp(sum.data(), tree.variables().gradient_base(), floats * sizeof(float)) != 0);
  CHECK(s.memory().partial_sums < tree.memory().partial_sums);
  // Of two parts there is one sum, whatever the order is called.
  CHECK(in_parts(model{noisy}, 2, serial{}, summation::in_order) == in_parts(model{noisy}, 2));
}

TEST_CASE("a sum in order is refused to several processes") {
  microbatch{8}.check_shared(4);
  microbatch{8, in_order}.check_shared(1);
  CHECK(refusal_of([] {
          microbatch{8, in_order}.check_shared(4);
        }) ==
        "microbatch: a sum in order cannot be shared by 4 processes; expected microbatch{8}, whose sum is a tree, or "
        "one process");
}

TEST_CASE("workers with a power of two of the parts each, their sums added in the tree, agree with one that has all") {
  constexpr std::int64_t all = 8, examples = 24;
  cut_stepper whole(model{noisy}, update, serial{}, microbatch{all});
  whole.allocate();
  whole.initialize(7);
  for (const std::int64_t workers : {2, 4}) {
    std::vector<std::unique_ptr<cut_stepper>> each;
    for (std::int64_t w = 0; w < workers; ++w) {
      each.push_back(std::make_unique<cut_stepper>(model{noisy}, update, serial{}, microbatch{all / workers}));
      each.back()->allocate();
      each.back()->initialize(7);
    }
    cut_stepper one(model{noisy}, update, serial{}, microbatch{all});
    one.allocate();
    one.initialize(7);
    for (std::uint32_t step = 0; step < 2; ++step) {
      fill<cut_stepper, mode::train>(one, examples, step + 1);
      one.sum_parts(0, all, all);
      const std::size_t floats = one.variables().trainable_bytes() / sizeof(float);
      tree_sum sum(workers, floats * sizeof(float));
      std::vector<float> here(floats);
      for (std::int64_t w = 0; w < workers; ++w) {
        cut_stepper& s = *each[static_cast<std::size_t>(w)];
        auto& from = one.bound<mode::train>(examples);
        auto& to = s.bound<mode::train>(examples / workers);
        s.placeholders<mode::train>([&](placeholder_info p) {  // its share of the batch
          const auto n = static_cast<std::size_t>(count(resolve(p.dims, examples / workers))) * size_of(p.type);
          std::memcpy(to.address(p.node), from.address(p.node) + static_cast<std::size_t>(w) * n, n);
        });
        s.sum_parts(w * all / workers, all / workers, all);
        std::memcpy(here.data(), s.variables().gradient_base(), floats * sizeof(float));
        sum.take(reinterpret_cast<std::byte*>(here.data()), [&](std::byte* a, const std::byte* b) {
          for (std::size_t i = 0; i < floats; ++i)
            reinterpret_cast<float*>(a)[i] += reinterpret_cast<const float*>(b)[i];
        });
      }
      CHECK(std::memcmp(here.data(), one.variables().gradient_base(), floats * sizeof(float)) == 0);
      one.update_from_sum(all);
      for (auto& s : each) {
        std::memcpy(s->variables().gradient_base(), here.data(), floats * sizeof(float));
        &s == &each[0] ? s->update_from_sums(all) : s->update_from_sum(all);
        CHECK(state_of(*s) == state_of(one));
      }
    }
  }
}

TEST_CASE("what cannot be cut is refused in a sentence") {
  const auto with = [](auto build, std::int64_t parts, std::int64_t batch_size) {
    return refusal_of([&] {
      cut_stepper s(model{build}, update, serial{}, microbatch{parts});
      s.allocate();
      s.bound<mode::train>(batch_size);
    });
  };
  CHECK(with(mlp, 5, 24) ==
        "a batch of 24 examples cannot be cut into 5 equal parts; let the batch be a multiple, and drop what is left "
        "over");
  CHECK(with(mlp, 0, 24) == "microbatch: expected parts >= 1, found 0");
  CHECK(with(convnet, 2, 24).find("the model changes \"batch_normalization/moving_mean\" while it computes") !=
        std::string::npos);
  CHECK(with(gpt, 2, 24).find("comes as rows") != std::string::npos);
}

TEST_CASE("a mask of bools among the variables has no gradient to add") {
  const auto masked = [](graph& g) {
    auto x = g.placeholder("x", {batch, 3});
    auto w = g.variable("w", {3}, {.init = ones});
    auto mask = g.variable("mask", {100}, {.init = zeros, .type = boolean});  // trainable, as the default is
    auto after = g.variable("after", {3}, {.init = ones});
    auto kept = reduce_sum(cast(mask, float32));
    return model_spec{
        .loss = reduce_mean(square(reduce_sum(x * w * after, {1}) - 1.0)) + kept, .metrics = {}, .predictions = {}};
  };
  const auto weights = [&](auto s) {
    s.allocate();
    s.initialize(7);
    fill<decltype(s), mode::train>(s, 24, 3);
    s.train_step();
    std::vector<float> out;
    for (std::size_t i = 0; i < s.variables().size(); ++i)
      if (s.variables().info(i).type == float32)
        for (const float v : s.variables().view(i).template as<float>()) out.push_back(v);
    return out;
  };
  const auto whole = weights(stepper<model, clipped, cpu<fast>>(model{masked}, update));
  const auto cut = weights(cut_stepper(model{masked}, update, serial{}, microbatch{6}));
  REQUIRE((whole.size() == 6 && cut.size() == 6));
  for (std::size_t i = 0; i < 6; ++i) CHECK(cut[i] == doctest::Approx(whole[i]).epsilon(1e-5));
}

TEST_CASE("a batch that is not the first extent is refused, and one part takes it") {
  const auto across = [](graph& g) {
    auto x = g.placeholder("x", {3, batch});
    auto w = g.variable("w", {3, 1}, {.init = ones});
    return model_spec{.loss = reduce_mean(square(reduce_sum(x * w, {0}))), .metrics = {}, .predictions = {}};
  };
  const auto with = [&](std::int64_t parts) {
    return refusal_of([&] {
      cut_stepper s(model{across}, update, serial{}, microbatch{parts});
      s.allocate();
      s.bound<mode::train>(24);
    });
  };
  CHECK(with(2) ==
        "microbatch: the batch of the placeholder \"x\" is not its first extent: [3, batch]; make it the "
        "first one, and transpose in the model");
  CHECK(with(1).empty());
}

TEST_CASE("a mean of outputs is written into no constant and into no placeholder") {
  const auto shown = [](graph& g) {
    const value x = g.placeholder("x", {batch, 1}, float64), rate = g.placeholder("rate", {}, float64);
    const value tenth = g.constant(0.1, float64), w = g.variable("w", {1}, {.init = ones, .type = float64});
    g.summary_scalar("tenth", tenth), g.summary_scalar("rate", rate);
    g.summary_scalar("as it is", reshape(tenth, {}));
    return model_spec{
        .loss = reduce_mean(square(x * w)) * tenth + rate, .metrics = {}, .predictions = {{"tenth", tenth}}};
  };
  using model_type = interpreted_model<cpu<fast>, ops<>, gating::op, true, true>;
  using three_parts = stepper<model_type, clipped, cpu<fast>, serial, microbatch>;
  three_parts s(model_type{shown}, update, serial{}, microbatch{3});
  s.allocate();
  s.initialize(7);
  s.bound<mode::train>(3);
  const auto values = [&](int id) {
    return reinterpret_cast<double*>(s.bound<mode::train>(3).view(id).mutable_data());
  };
  s.placeholders<mode::train>(
      [&](const placeholder_info& p) { std::fill_n(values(p.node), p.name == "x" ? 3 : 1, 0.7); });
  for (int i = 0; i < 3; ++i) s.train_step();
  s.placeholders<mode::train>([&](const placeholder_info& p) { CHECK(*values(p.node) == 0.7); });
  const runnable& r = s.graph<mode::train>();
  int constants = 0;
  for (int i = 0; i < r.graph.view.size; ++i) {
    if (r.at(i).op != &constant_card || r.at(i).type != float64 || std::abs(*values(i) - 0.1) > 0.01) continue;
    CHECK(*values(i) == 0.1);
    ++constants;
  }
  CHECK(constants > 0);
}

TEST_CASE("a batch that was lent to half a step is given back at its end") {
  cut_stepper s(model{mlp}, update, serial{}, microbatch{1});
  s.allocate();
  s.initialize(7);
  fill<cut_stepper, mode::train>(s, 32, 3);
  auto& m = s.bound<mode::train>(32);
  aligned_buffer mine(32 * 13 * 4);
  s.placeholders<mode::train>([&](const placeholder_info& p) {
    if (p.name != "x") return;
    std::memcpy(mine.data(), m.view(p.node).data, mine.size());
    REQUIRE(s.lend<mode::train>("x", {float32, {32, 13}, mine.data()}));
  });
  s.sum_parts(0, 1, 1);
  s.update_from_sum(1);
  CHECK(m.source(0) == m.address(0));
}
