// These ops draw random numbers inside a step. Every draw is a pure function of four numbers: the run's seed, the op's
// own stream, the step, and the element's index (base/random.hpp). So the backward pass recomputes the mask that the
// forward pass used, a resumed run draws the same numbers as an uninterrupted one, and threads change nothing.
//
// Seed and step are two int64 variables, "random_seed" and "random_step", in collections of these names: there is one
// pair per graph, made by the first op that draws, outside of all scopes. What runs the steps sets the seed and counts
// the step; both are stored in checkpoints like other variables.
#pragma once
#include "elementwise.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace collection {
inline constexpr std::string_view random_seed = "random_seed", random_step = "random_step";
}

namespace detail {
struct random_attr {
  int type;
  shape_attr dims;
};
constexpr void check_counters(inference& r, int first) {
  for (int i = first; i < first + 3; ++i)
    if (r.in_type(i) != int64 || r.in(i).rank != 0) return r.refuse("seed, step and stream must be int64 scalars");
}
GRADUS_CARD_FUNCTION void infer_random(inference& r) {
  const auto a = r.attributes<random_attr>();
  r.type = static_cast<dtype>(a.type), r.dims = a.dims.get();
  if (!is_float(r.type)) return r.refuse("draws float32 or float64, not ", r.type);
  check_counters(r, 0);
}
GRADUS_CARD_FUNCTION void infer_dropout(inference& r) {
  r.type = r.in_type(0), r.dims = r.in(0);
  if (!is_float(r.type)) return r.refuse("takes float32 or float64, got ", r.type);
  if (r.in_type(1) != r.type || r.in(1).rank != 0) return r.refuse("the rate must be a scalar of ", r.type);
  check_counters(r, 2);
}
GRADUS_CARD_FUNCTION void lower_random(lowering& l) { l.rows = count(l.out()); }
GRADUS_CARD_FUNCTION void grad_dropout(backward&);

constexpr value counter(graph& g, std::string_view name) {
  value found;
  g.for_each_in(name, [&](value v) { found = v; });
  if (found) return found;
  // The name is at the root whatever the scope is, so an unnamed node is added and becomes the variable.
  const auto words = to_words(variable_attr{
      .trainable = 0, .local = 0, .kind = initializer::constant, .a = 0, .b = 0, .fan = 0, .distribution = 0});
  found = g.add(variable_card, nullptr, 0, words.data(), static_cast<int>(words.size()));
  node& n = g.nodes[found.id];
  n.name = g.intern(name), n.scope = -1, n.type = int64;
  g.add_to(collection::global_variables, found);
  g.add_to(name, found);
  return found;
}
struct random_source {
  value seed, step, stream;
};
// Returns a new stream. Its number is its position in the graph, which is the same whoever builds the graph. A global
// step that a session's program or an estimator made before the model does not count, so that they draw the same
// numbers as a trainer.
constexpr random_source draw(graph& g) {
  const value seed = counter(g, collection::random_seed), step = counter(g, collection::random_step);
  int position = g.nodes.count;
  g.for_each_in(collection::global_step, [&](value) { --position; });
  return {seed, step, g.constant(position, int64)};
}
}  // namespace detail

namespace cards {
inline constexpr card random_uniform{"RandomUniform", 3,       trait::blocks | trait::tables,
                                     infer_random,    nullptr, lower_random},
    random_normal{"RandomStandardNormal", 3, trait::blocks | trait::tables, infer_random, nullptr, lower_random},
    dropout{"Dropout", 5, trait::tables, infer_dropout, grad_dropout, lower_random};
}  // namespace cards

namespace detail {
constexpr value random(graph& g, const card& op, const shape& dims, dtype type) {
  const auto [seed, step, stream] = draw(g);
  return g.add_with(op, {seed, step, stream}, random_attr{static_cast<int>(type), to_attr(dims)});
}
}  // namespace detail
// Returns numbers uniform in [low, high), new in every step. The shape may hold batch. They are drawn from [0, 1),
// times (high - low) plus low; where low is not 0, this may round to high itself, as in TensorFlow.
constexpr value random_uniform(graph& g, const shape& dims, double low = 0, double high = 1, dtype type = float32) {
  const value u = detail::random(g, cards::random_uniform, dims, type);
  return low == 0 && high == 1 ? u : u * (high - low) + low;
}
// Returns normal numbers of this mean and standard deviation, new in every step; the method of Box and Muller makes two
// of them from two uniform ones. The shape may hold batch.
constexpr value random_normal(graph& g, const shape& dims, double mean = 0, double deviation = 1,
                              dtype type = float32) {
  const value z = detail::random(g, cards::random_normal, dims, type);
  return mean == 0 && deviation == 1 ? z : z * deviation + mean;
}
// In mode train, makes each element 0 with probability `rate` and divides it by 1 - rate otherwise; in other modes
// returns x itself (Srivastava et al. 2014). The rate is in [0, 1), as in tf.nn.dropout(rate=).
constexpr value dropout(value x, double rate) {
  graph& g = *x.g;
  if (!(rate >= 0 && rate < 1)) {
    g.refuse("dropout: the rate must be in [0, 1), got ", static_cast<int>(rate * 100), "%");
    return x;
  }
  if (rate == 0 || g.mode() != mode::train) return x;
  const auto [seed, step, stream] = detail::draw(g);
  return g.add(cards::dropout, {x, g.constant(rate, is_float(x.type()) ? x.type() : float32), seed, step, stream});
}

namespace detail {
GRADUS_CARD_FUNCTION void grad_dropout(backward& b) {
  if (b.wants(0)) b.to(0, b.g.add(cards::dropout, {b.dy, b.in(1), b.in(2), b.in(3), b.in(4)}));
}
}  // namespace detail

}  // namespace gradus
