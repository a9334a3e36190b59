#include <gradus/run/session_op.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/session.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

using namespace gradus;

namespace {
// Ops of the three phases, which write down when they ran.
std::vector<std::string> seen;
std::vector<float> source;               // what `take` gives to its placeholder
std::function<void()> when_put = [] {};  // called by `put`

constexpr unsigned own = trait::keeps | trait::blocks | trait::session | trait::at_session;
void infer_scalar(inference& r) { r.type = float32; }

void run_take(session_call& c) {
  seen.push_back("take");
  auto& held = c.memory;
  if (held == nullptr) held = std::make_shared<std::vector<float>>();
  auto& mine = *static_cast<std::vector<float>*>(held.get());
  mine = source;
  c.given->push_back(feed(value{&c.session.of(), c.attributes[0]}, mine));
}
void run_note(session_call& c) {
  seen.push_back("note");
  c.result.mutable_as<float>()[0] = c.operands[0].as<float>()[0] + 100;
}
void run_put(session_call& c) {
  seen.push_back("put " + std::to_string(static_cast<int>(c.operands[0].as<float>()[0])));
  when_put();
}
constexpr session_card take{{"Take", 0, own}, &run_take, run_phase::before},
    note{{"Note", 1, own, &infer_scalar}, &run_note}, put{{"Put", 1, own}, &run_put, run_phase::after};

// A placeholder that `take` fills.
value taken(graph& g, const shape& dims) {
  const int at = g.nodes.count + 1;
  const value op = g.add(take, nullptr, 0, &at, 1);
  const value x = g.placeholder("taken", dims);
  g.depend(x, op);
  return x;
}
template <class Error, class Call>
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
}  // namespace

TEST_CASE("ops run before, with and behind the kernels, whatever the order in which they were made") {
  graph g;
  const value w = g.variable("w", {}, {.init = constant_initializer(3)});
  const value late = g.add(put, {w});
  const value during = g.add(note, {w});
  const value x = taken(g, {batch});
  const value y = x * 2.0 + during;
  session s{g};
  s.initialize();
  seen.clear(), source = {1, 2, 3};
  const auto r = s.run({y, late, during});
  CHECK(seen == std::vector<std::string>{"take", "note", "put 3"});
  CHECK(floats(r[0]) == std::vector<float>{105, 107, 109});  // the batch is what came
  CHECK(r[2].as<float>()[0] == 103);
  source = {7};
  CHECK(floats(s.run(y)) == std::vector<float>{117});
  seen.clear();
  s.run(w);
  CHECK(seen.empty());  // nobody asked for them
}

TEST_CASE("a placeholder that is fed takes nothing") {
  graph g;
  const value x = taken(g, {batch}), y = x + 1.0;
  session s{g};
  seen.clear(), source = {1};
  CHECK(floats(s.run(y, {{x, std::vector<float>{4, 5}}})) == std::vector<float>{5, 6});
  CHECK(seen.empty());
  CHECK(floats(s.run(y)) == std::vector<float>{2});
}

TEST_CASE("behind the kernels the run holds no variable, and operands are what the kernels left") {
  graph g;
  const value w = g.variable("w", {}, {.init = ones}), more = assign_add(w, g.constant(1.0));
  const value late = g.add(put, {more}), also = g.add(put, {more});
  const value both = g.group({late, also});
  session s{g};
  s.initialize();
  seen.clear();
  int left = 1;
  when_put = [&] {
    if (left-- > 0) s.run(assign(w, g.by_name("w")));  // writes w: a run that held w would wait for itself
  };
  const value nine = assign(w, g.constant(9.0));
  when_put = [&] { s.run(nine); };
  s.run(both);
  when_put = [] {};
  CHECK(seen == std::vector<std::string>{"put 2", "put 2"});  // not 9
}

TEST_CASE("what cannot be ordered is refused") {
  graph g;
  const value w = g.variable("w", {}, {.init = ones});
  const value late = g.add(put, {w});
  value reads, first;
  {
    const auto waits = g.control_dependencies({late});
    reads = w + 1.0;
  }
  {
    const auto waits = g.control_dependencies({reads});
    const int at = g.nodes.count + 1;
    first = g.add(take, nullptr, 0, &at, 1);
  }
  session s{g};
  s.initialize();
  CHECK(refusal<unimplemented>([&] { s.run(reads); }).find("waits for Put, which runs when the kernels") !=
        std::string::npos);
  CHECK(refusal<unimplemented>([&] { s.run(first); }) != "(nothing was refused)");
}
