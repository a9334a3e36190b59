// sanitized in every run: a run from two threads must be found without a race of its own
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/run/session.hpp>
#include <gradus/tensor/xtensor.hpp>

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

using namespace gradus;

namespace {
template <class Error = invalid_argument, class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "(nothing was refused)";
}
std::vector<float> floats(const const_tensor_view& v) {
  const auto s = v.as<float>();
  return {s.begin(), s.end()};
}
// y = 2 x + w, over rows of three; `other` is for nothing; n = ids + 1
struct small {
  graph g;
  value x = g.placeholder("x", {batch, 3}), other = g.placeholder("other", {batch, 2}),
        ids = g.placeholder("ids", {batch}, int32);
  value w = g.variable("w", {3}, {.init = ones});
  value y = x * 2.0 + w, n = ids + 1.0, fixed = g.placeholder("fixed", {2, 2}), squared = square(fixed);
};
const std::vector<float> six{1, 2, 3, 4, 5, 6};
}  // namespace

TEST_CASE("fetches and feeds: by tensor and by name, spans and xtensor, any batch") {
  small m;
  session s{m.g};
  s.initialize(1);
  CHECK(floats(s.run(m.y, {{"x", six}})) == std::vector<float>{3, 5, 7, 9, 11, 13});
  CHECK(s.run(m.y, {{m.x, six}}).dims == extents{2, 3});
  const xt::xtensor<float, 2> one{{1.0f, 1.0f, 1.0f}};
  CHECK(floats(s.run(m.y, {{m.x, one}})) == std::vector<float>{3, 3, 3});
  const std::vector<float> nothing;
  CHECK(s.run(m.y, {{m.x, nothing}}).dims == extents{0, 3});
  const auto both = s.run({m.y, "w"}, {{"x", six}});
  CHECK(both.size() == 2);
  CHECK(floats(both[1]) == std::vector<float>{1, 1, 1});
  CHECK(floats(s.run(m.x, {{"x", six}})) == six);  // a placeholder is a fetch too
  const std::vector<float> big(300, 1.0f);
  CHECK(s.run(m.y, {{"x", big}}).dims == extents{100, 3});  // grows
  CHECK(floats(s.run(m.y, {{"x", six}})) == std::vector<float>{3, 5, 7, 9, 11, 13});
  CHECK(floats(s.run(m.squared, {{"fixed", std::vector<float>{1, 2, 3, 4}}})) == std::vector<float>{1, 4, 9, 16});
}

TEST_CASE("refusals: fetches") {
  small m;
  session s{m.g};
  s.initialize(1);
  CHECK(refusal<not_found>([&] { s.run("nothing"); }) ==
        "the graph has no node named \"nothing\"; give a name that a node was made with, or the tensor itself");
  graph stranger;
  const value c = stranger.constant(1);
  CHECK(refusal([&] { s.run(c); }) ==
        "a fed or fetched tensor belongs to another graph than the session's; give a tensor of this session's graph");
  CHECK(refusal([&] { s.run(value{}); }) == "a fed or fetched tensor is empty; a gradient that is None has no tensor");
}

TEST_CASE("refusals: feeds") {
  small m;
  session s{m.g};
  s.initialize(1);
  const std::vector<float> five(5), nine(9), four(4);
  CHECK(refusal([&] { s.run(m.y); }) == "placeholder \"x\" is needed and was not fed: give {\"x\", data}");
  CHECK(refusal([&] {
          s.run(m.y, {{"x", five}});
        }) == "feed \"x\": expected [batch, 3], got [5]; feed an array of those extents, or its values in one row");
  const const_tensor_view turned(std::span<const float>(six), {3, 2});
  CHECK(refusal([&] {
          s.run(m.y, {{"x", turned}});
        }) == "feed \"x\": expected [batch, 3], got [3, 2]; feed an array of those extents, or its values in one row");
  CHECK(refusal([&] {
          s.run(m.squared, {{"fixed", five}});
        }) == "feed \"fixed\": expected [2, 2], got [5]; feed an array of those extents, or its values in one row");
  CHECK(refusal([&] {
          s.run(m.y, {{"x", std::vector<double>{1, 2, 3}}});
        }) == "feed \"x\": expected float32, got float64; feed float32 values");
  CHECK(refusal<not_found>([&] {
          s.run(m.y, {{"x", six}, {"nothing", six}});
        }) ==
        "feed \"nothing\": the graph has no placeholder of this name; it has \"x\", \"other\", \"ids\", \"fixed\"");
  CHECK(refusal([&] {
          s.run(m.y, {{"x", six}, {"w", six}});
        }) ==
        "feed \"w\": only placeholders are fed, and this is none; the graph has \"x\", \"other\", \"ids\", \"fixed\"");
  CHECK(refusal([&] { s.run(m.y, {{"x", six}, {m.x, six}}); }) == "feed \"x\" is given twice; give it once");
  graph stranger;
  const value p = stranger.placeholder("p", {});
  CHECK(refusal([&] {
          s.run(m.y, {{p, six}});
        }) ==
        "a fed or fetched tensor belongs to another graph than the session's; give a tensor of this session's graph");
  CHECK(refusal([&] {
          s.run({m.y, m.n}, {{"x", six}, {"ids", std::vector<int>{1, 2, 3}}});
        }) == "feed \"ids\" holds 3 examples, another feed 2; feed as many of each");
  // A placeholder that the fetches do not need may be fed, whatever its batch; as in TensorFlow it must still fit.
  CHECK(floats(s.run(m.y, {{"x", six}, {"other", four}})) == std::vector<float>{3, 5, 7, 9, 11, 13});
  CHECK(floats(s.run(m.y, {{"other", std::vector<float>(20)}, {"x", six}})) == std::vector<float>{3, 5, 7, 9, 11, 13});
  CHECK(refusal([&] {
          s.run(m.y, {{"x", six}, {"other", five}});
        }) == "feed \"other\": expected [batch, 2], got [5]; feed an array of those extents, or its values in one row");
  CHECK(refusal([&] {
          s.run(m.y, {{"x", six}, {"other", std::vector<int>(4)}});
        }) == "feed \"other\": expected float32, got int32; feed float32 values");
}

TEST_CASE("refusals: variables without a value") {
  small m;
  session s{m.g};
  CHECK(refusal<failed_precondition>([&] {
          s.run(m.y, {{"x", six}});
        }) == "variable \"w\" is not initialized; call initialize(seed)");
  CHECK(refusal<failed_precondition>([&] { s.run("w"); }) ==
        "variable \"w\" is not initialized; call initialize(seed)");
  CHECK(floats(s.run(m.squared, {{"fixed", std::vector<float>(4, 3.0f)}})) == std::vector<float>(4, 9.0f));
  CHECK(refusal<not_found>([&] { s.variable("v"); }) == "no variable is named \"v\"; the session has \"w\"");
  s.mutable_variable("w").mutable_as<float>()[1] = 5;  // writing is initializing
  CHECK(floats(s.run("w"))[1] == 5);
  s.initialize(1);  // leaves what has a value alone
  CHECK(floats(s.run("w"))[1] == 5);
}

TEST_CASE("assign initializes; writes take place in the order of the program") {
  graph g;
  const value w = g.variable("w", {2}, {.init = zeros}), x = g.placeholder("x", {2});
  const value before = w * 1.0, assigned = assign(w, x), after = w * 1.0, more = assign_add(w, x), last = more * 10.0;
  const value group = g.group({assigned, more}, "both");
  const std::array two{1.0f, 2.0f};
  {
    session s{g};
    CHECK(refusal<failed_precondition>([&] {
            s.run(more, {{"x", two}});
          }) == "variable \"w\" is not initialized; call initialize(seed)");
    CHECK(floats(s.run(assigned, {{"x", two}})) == std::vector<float>{1, 2});
    CHECK(floats(s.run(before)) == std::vector<float>{1, 2});
    const auto r = s.run({before, after, last, more}, {{"x", two}});  // assigned is not among them, and does not run
    CHECK(floats(r[0]) == std::vector<float>{1, 2});
    CHECK(floats(r[1]) == std::vector<float>{1, 2});
    CHECK(floats(r[2]) == std::vector<float>{20, 40});
    CHECK(floats(r[3]) == std::vector<float>{2, 4});
  }
  session s{g};
  s.initialize();
  CHECK(s.run(group, {{"x", two}}).size_bytes() == 0);  // an op is run for what it does
  CHECK(floats(s.run("w")) == std::vector<float>{2, 4});
}

TEST_CASE("threads give the same bits; errors in kernels are the same type, and the next run works") {
  graph g;
  const value x = g.placeholder("x", {batch, 8}), label = g.placeholder("label", {batch}, int32);
  value h = x;
  for (int i = 0; i < 3; ++i) h = dense(h, {.units = 8, .activation = tanh}) + dense(x, {.units = 8});
  const value loss = sparse_softmax_cross_entropy(h, label);
  const std::vector<float> data(32, 0.5f);
  const std::vector<int> good{0, 1, 7, 3}, bad{0, 1, 8, 3};
  session serial_one{g};
  serial_one.initialize(3);
  const auto expected = floats(serial_one.run(loss, {{"x", data}, {"label", good}}));
  for (int n : {1, 2, 3}) {
    session s{g, threads{n}};
    s.initialize(3);
    CHECK(floats(s.run(loss, {{"x", data}, {"label", good}})) == expected);
    CHECK(refusal([&] { s.run(loss, {{"x", data}, {"label", bad}}); }).find("8") != std::string::npos);
    CHECK(floats(s.run(loss, {{"x", data}, {"label", good}})) == expected);
  }
}

TEST_CASE("a variable that a fetch does not need may stay without a value; seeds decide the others by name") {
  graph g, h;
  const value a = g.variable("a", {100}), b = g.variable("b", {100});
  h.variable("new", {7}, {.init = he_normal});
  const value other_b = h.variable("b", {100});
  session s{g}, t{h}, u{g};
  s.initialize(5), t.initialize(5), u.initialize(6);
  CHECK(floats(s.run(b)) == floats(t.run(other_b)));  // adding a variable leaves the others as they were
  CHECK(floats(s.run(b)) != floats(s.run(a)));
  CHECK(floats(s.run(b)) != floats(u.run(b)));
}
