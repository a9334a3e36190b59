// one thread: nothing here runs at the same time
#include <gradus/cpu/frozen.hpp>
#include <gradus/ops/frozen.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/run/memory_limit.hpp>
#include <gradus/update/accumulate.hpp>
#include <gradus/update/chain.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/lookahead.hpp>
#include <gradus/update/loss_scale.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/ftrl.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>

#include "static_compare.hpp"

using namespace static_test;

namespace {
template <auto Build, class... Policies>
using stepper_of = static_stepper<Build, default_device, Policies...>;
template <auto Build, class... Policies>
inline constexpr bool fits = detail::memory_fits<Build, default_device, Policies...>::value;
// What the error of these policies says, beside a limit of one byte or another.
template <std::size_t Limit, auto Build, class... Policies>
std::string sentence_at() {
  constexpr auto& text = detail::memory_sentence<Build, default_device, Policies..., memory_at_most<Limit>>::value;
  return {text.refusal, static_cast<std::size_t>(text.size.refusal)};
}
template <auto Build, class... Policies>
std::string sentence_of() {
  return sentence_at<1, Build, Policies...>();
}
std::size_t number_after(const std::string& text, const std::string& words) {
  const std::size_t at = text.find(words + " ");
  std::size_t n = 0;
  if (at != std::string::npos) std::from_chars(&text[at] + words.size() + 1, text.data() + text.size(), n);
  return n;
}

constexpr auto with_table = [](graph& g) {
  const auto ids = g.placeholder("ids", {batch, 3}, int32);
  const auto h = reshape(embedding(ids, {.input_dim = 20, .output_dim = 6, .name = "table"}), {batch, 18});
  return model_spec{.loss = reduce_mean(square(dense(h, {.units = 40}))), .metrics = {}, .predictions = {}};
};
constexpr auto in_double = [](graph& g) {
  const auto w = g.variable("w", {3, 5}, {.type = float64}), x = g.placeholder("x", {batch, 3}, float64);
  return model_spec{.loss = reduce_mean(square(tanh(matmul(x, w)))), .metrics = {}, .predictions = {}};
};
constexpr std::array<float, 8 * 16> kernel = [] {
  std::array<float, 8 * 16> k{};
  for (std::size_t i = 0; i < k.size(); ++i) k[i] = static_cast<float>(i % 7) - 3;
  return k;
}();
constexpr auto frozen = quantize_weights<frozen_dense_weights<8, 16>>(kernel, std::array<float, 16>{});
constexpr auto above_frozen = [](graph& g) {
  const auto h = dense(frozen_dense<frozen>(g.placeholder("x", {batch, 8})), {.units = 6, .activation = relu});
  return model_spec{.loss = reduce_mean(square(dense(h, {.units = 3}))), .metrics = {}, .predictions = {}};
};
}  // namespace

// The limit counts the object, with what the optimizer remembers; the stepper that just fits is accepted.
static_assert(fits<images, static_batch<4>, adam, memory_at_most<sizeof(stepper_of<images, static_batch<4>, adam>)>>);
static_assert(
    !fits<images, static_batch<4>, adam, memory_at_most<sizeof(stepper_of<images, static_batch<4>, adam>) - 1>>);
static_assert(fits<images, static_batch<4>, adam>);

TEST_CASE("memory_parts are all of memory_bytes, and each is what its name says") {
  const auto check = []<class S>(const S*) {
    constexpr static_memory p = S::memory_parts;
    CHECK(p.variables + p.gradients + p.slots + p.inputs + p.step == S::memory_bytes);
    return p;
  };
  constexpr stepper_of<images, static_batch<4>, adam>* plain = nullptr;
  const static_memory whole = check(plain);
  CHECK(whole.slots == 2 * whole.gradients);  // m and v
  CHECK(whole.variables >= whole.gradients);
  CHECK(whole.inputs >= 4 * 64 * sizeof(float));
  constexpr stepper_of<images, static_batch<4>, adam, release_gradients>* released = nullptr;
  CHECK(check(released).gradients == 0);
  constexpr stepper_of<images, static_batch<4>, adam, gradus::slots<bfloat16>>* halved = nullptr;
  CHECK(2 * check(halved).slots == whole.slots);
  constexpr stepper_of<images, static_batch<4>, adam, one_by_one>* each = nullptr;
  CHECK(check(each).step < whole.step);
  CHECK(check(each).gradients == whole.gradients);
  constexpr stepper_of<with_table, static_batch<4>, adam>* table = nullptr;
  check(table);
}

TEST_CASE("the error gives the bytes, the limit, and what each policy would make of them") {
  const std::string text = sentence_of<images, static_batch<4>, adam>();
  INFO(text);
  using one = stepper_of<images, static_batch<4>, adam, memory_at_most<1>>;
  CHECK(number_after(text, "takes") == sizeof(one));
  CHECK(number_after(text, "allowed are") == 1);
  CHECK(number_after(text, "variables") == one::memory_parts.variables);
  CHECK(number_after(text, "gradients") == one::memory_parts.gradients);
  CHECK(number_after(text, "slots") == one::memory_parts.slots);
  CHECK(number_after(text, "inputs") == one::memory_parts.inputs);
  CHECK(number_after(text, "a step") == one::memory_parts.step);
  CHECK(number_after(text, "static_batch<1>") == sizeof(stepper_of<images, static_batch<1>, adam>));
  CHECK(number_after(text, "one_by_one") == sizeof(stepper_of<images, static_batch<4>, adam, one_by_one>));
  CHECK(number_after(text, "release_gradients") ==
        sizeof(stepper_of<images, static_batch<4>, adam, release_gradients>));
  CHECK(number_after(text, "slots<bfloat16>") ==
        sizeof(stepper_of<images, static_batch<4>, adam, gradus::slots<bfloat16>>));
  if (sizeof(stepper_of<images, static_batch<4>, adam, recompute<2>>) < sizeof(one))
    CHECK(number_after(text, "recompute<2>") == sizeof(stepper_of<images, static_batch<4>, adam, recompute<2>>));
  else
    CHECK(text.find("recompute<2>") == std::string::npos);
  CHECK(number_after(text, "slots<int8>") == sizeof(stepper_of<images, static_batch<4>, adam, gradus::slots<int8>>));
}

TEST_CASE("the error offers nothing that would be refused, that is there, or that does not help") {
  const auto offers = [](const std::string& text, const char* policy) {
    INFO(text);
    return text.find(std::string("with ") + policy + " ") != std::string::npos;
  };
  const std::string normed = sentence_of<images, static_batch<4>, adam, clip_by_global_norm>();
  CHECK(!offers(normed, "release_gradients"));
  CHECK(offers(normed, "one_by_one"));
  CHECK(offers(normed, "slots<int8>"));
  const std::string gated = sentence_of<images, static_batch<4>, adam, gate_graph>();
  CHECK(!offers(gated, "release_gradients"));
  const std::string codes = sentence_of<images, static_batch<4>, ftrl>();
  CHECK(offers(codes, "slots<bfloat16>"));
  CHECK(!offers(codes, "slots<int8>"));
  const std::string summed = sentence_of<images, static_batch<4>, adam, accumulate>();
  CHECK(!offers(summed, "slots<bfloat16>"));
  CHECK(!offers(summed, "slots<int8>"));
  const std::string scaled = sentence_of<images, static_batch<4>, adam, dynamic_loss_scale>();
  CHECK(!offers(scaled, "release_gradients"));
  CHECK(!offers(scaled, "slots<int8>"));
  const std::string rows = sentence_of<with_table, static_batch<4>, adam>();
  CHECK(!offers(rows, "one_by_one"));
  CHECK(!offers(rows, "slots<bfloat16>"));
  CHECK(offers(rows, "static_batch<1>"));
  const std::string single = sentence_of<images, static_batch<1>, adam, release_gradients, gradus::slots<int8>>();
  CHECK(!offers(single, "static_batch<1>"));
  CHECK(!offers(single, "one_by_one"));
  CHECK(!offers(single, "release_gradients"));
  CHECK(!offers(single, "slots<bfloat16>"));
  CHECK(single.find("may take fewer with fused_pooling") != std::string::npos);
  const auto schedule = [](std::int64_t) { return 0.1; };
  CHECK(offers(sentence_of<images, static_batch<4>, adam, decltype(schedule)>(), "static_batch<1>"));
  const std::string copied = sentence_of<images, static_batch<4>, decltype(chain{adam{}, lookahead{}})>();
  CHECK(!offers(copied, "slots<bfloat16>"));
  CHECK(!offers(copied, "slots<int8>"));
  CHECK(offers(copied, "one_by_one"));
  // One example at a time takes no less than a batch of one.
  const std::string whole = sentence_of<images, static_batch<1>, adam>();
  CHECK(sizeof(stepper_of<images, static_batch<1>, adam, one_by_one>) >=
        sizeof(stepper_of<images, static_batch<1>, adam>));
  CHECK(!offers(whole, "one_by_one"));
}

TEST_CASE("where no policy suffices alone, the error names the policies that together leave the fewest bytes") {
  using gradus::slots;
  constexpr std::size_t codes = sizeof(stepper_of<images, static_batch<4>, adam, slots<int8>>),
                        each = sizeof(stepper_of<images, static_batch<4>, adam, one_by_one>),
                        both = sizeof(stepper_of<images, static_batch<4>, adam, one_by_one, slots<int8>>),
                        of_one = sizeof(stepper_of<images, static_batch<1>, adam, release_gradients, slots<int8>>);
  constexpr std::size_t single = sizeof(stepper_of<images, static_batch<1>, adam>);
  constexpr std::size_t least = std::min({codes, each, single});
  static_assert(of_one < both && both < least);
  const auto together = [](const std::string& text) {
    const std::size_t end = text.find(" together "), begin = text.rfind("with ", end);
    return end == std::string::npos ? "" : text.substr(begin, text.find('.', end) - begin);
  };
  const std::string with_both = "with one_by_one and slots<int8> together " + std::to_string(both),
                    with_all =
                        "with static_batch<1> and release_gradients and slots<int8> together " + std::to_string(of_one);
  CHECK(together(sentence_at<least, images, static_batch<4>, adam>()) == "");
  CHECK(together(sentence_at<least - 1, images, static_batch<4>, adam>()) == with_both);
  CHECK(together(sentence_at<both, images, static_batch<4>, adam>()) == with_both);
  CHECK(together(sentence_at<both - 1, images, static_batch<4>, adam>()) == with_all);
  CHECK(together(sentence_of<images, static_batch<4>, adam>()) == with_all);
  // Of these policies what is given, refused or no help is not named.
  CHECK(together(sentence_of<images, static_batch<4>, adam, clip_by_global_norm>()) ==
        "with static_batch<1> and slots<int8> together " +
            std::to_string(sizeof(stepper_of<images, static_batch<1>, adam, clip_by_global_norm, slots<int8>>)));
  CHECK(together(sentence_of<images, static_batch<4>, ftrl>()) ==
        "with static_batch<1> and release_gradients and slots<bfloat16> together " +
            std::to_string(sizeof(stepper_of<images, static_batch<1>, ftrl, release_gradients, slots<bfloat16>>)));
  CHECK(together(sentence_of<images, static_batch<1>, adam>()) ==
        "with release_gradients and slots<int8> together " + std::to_string(of_one));
  CHECK(together(sentence_of<images, static_batch<1>, adam, release_gradients, slots<int8>>()) == "");
  CHECK(together(sentence_of<with_table, static_batch<1>, adam>()) == "");
}

TEST_CASE("the numbers are those of the steppers in double and above frozen layers, too") {
  const std::string wide = sentence_of<in_double, static_batch<4>, adam>();
  INFO(wide);
  CHECK(number_after(wide, "static_batch<1>") == sizeof(stepper_of<in_double, static_batch<1>, adam>));
  CHECK(number_after(wide, "one_by_one") == sizeof(stepper_of<in_double, static_batch<4>, adam, one_by_one>));
  CHECK(number_after(wide, "release_gradients") ==
        sizeof(stepper_of<in_double, static_batch<4>, adam, release_gradients>));
  CHECK(wide.find("with slots") == std::string::npos);  // they take variables of float32
  const std::string head = sentence_of<above_frozen, static_batch<4>, adam>();
  INFO(head);
  CHECK(number_after(head, "variables") == stepper_of<above_frozen, static_batch<4>, adam>::memory_parts.variables);
  CHECK(number_after(head, "static_batch<1>") == sizeof(stepper_of<above_frozen, static_batch<1>, adam>));
  CHECK(number_after(head, "one_by_one") == sizeof(stepper_of<above_frozen, static_batch<4>, adam, one_by_one>));
  CHECK(number_after(head, "release_gradients") ==
        sizeof(stepper_of<above_frozen, static_batch<4>, adam, release_gradients>));
  CHECK(number_after(head, "slots<bfloat16>") ==
        sizeof(stepper_of<above_frozen, static_batch<4>, adam, gradus::slots<bfloat16>>));
  CHECK(number_after(head, "slots<int8>") ==
        sizeof(stepper_of<above_frozen, static_batch<4>, adam, gradus::slots<int8>>));
}

TEST_CASE("a stepper within its limit trains with the bits of one without") {
  auto s = make_static_stepper<images>(static_batch<4>{}, adam{.rate = 0.01}, memory_at_most<100'000>{});
  same_bits<images, fast>(s, 4, microbatch{1}, adam{.rate = 0.01});
}
