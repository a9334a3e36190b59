// What a session asks of a train op, with one that only writes down what it is asked.
#include <gradus/cpu/device.hpp>
#include <gradus/graph/law.hpp>
#include <gradus/run/graph_update.hpp>
#include <gradus/run/session.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

using namespace gradus;

namespace {
class written_down final : public graph_update {
public:
  explicit written_down(std::vector<std::string>& said) : said_(said) {}
  int train_op() const override { return 77; }
  std::size_t variables() const override { return 1; }
  started variable(std::size_t) const override { return {"slot", "w"}; }
  void start(std::size_t, std::byte* to, const std::byte* beside) const override {
    std::memcpy(to, beside, sizeof(float));  // as the variable
  }
  void run(const runnable& r, const bound_call& c, std::int64_t) override {
    said_.emplace_back(r.at(c.node).op->name);
    if (r.at(c.node).op == &cards::update_variable) *reinterpret_cast<float*>(c.args[1]) += 1;
  }

private:
  std::vector<std::string>& said_;
};
struct writer {
  using policy_for = kind::optimizer;
  std::vector<std::string>* said;
  void run_in(const graph&, std::vector<std::unique_ptr<graph_update>>& runs) const {
    runs.push_back(std::make_unique<written_down>(*said));
  }
};
}  // namespace

TEST_CASE("begin, update, finish; variables are started by their optimizer") {
  graph g;
  const value w = g.variable("w", {}, {.init = constant_initializer(5)});
  const value slot = g.variable("slot", {}, {.init = zeros, .trainable = false});
  const detail::update_attr a{77, 0};
  const value begin = g.add_with(cards::begin_updates, {}, a);
  const value update = g.add_with(cards::update_variable, {w, g.constant(1), slot}, a);
  g.depend(update, begin);
  const value finish = g.add_with(cards::finish_updates, {slot}, a);
  g.depend(finish, update);
  CHECK(broken_law(parts_of(g)) == nullptr);
  CHECK(begin.type() == float64);
  std::vector<std::string> said;
  session s{g, writer{&said}};
  s.initialize();
  CHECK(s.variable("slot").as<float>()[0] == 5);
  s.run(finish);
  CHECK(said == std::vector<std::string>{"BeginUpdates", "UpdateVariable", "FinishUpdates"});
  CHECK(s.variable("w").as<float>()[0] == 6);
  CHECK_THROWS_WITH_AS(g.add_with(cards::update_variable, {begin}, a),
                       "UpdateVariable: operand 0 must be a variable ([])", invalid_argument);
}
