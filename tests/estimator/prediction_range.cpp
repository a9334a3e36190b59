#include <gradus/estimator/prediction_range.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace gradus;

namespace {
// Counts to three; with two names the second is the same number.
class three final : public detail::prediction_run {
public:
  explicit three(std::vector<std::string> names) : names_(std::move(names)) {}
  void begin() override {
    if (began++ == 0) show();
  }
  void next() override { ++n_, show(); }
  bool ended() const override { return n_ == 3; }
  int began = 0;

private:
  std::vector<std::string> names_;
  int n_ = 0;
  void show() {
    clear();
    for (const auto& name : names_) add(name, const_tensor_view(std::span<const int>(&n_, 1), {}));
  }
};
}  // namespace

TEST_CASE("a range that is read once, lazily, with names and without") {
  const auto run = std::make_shared<three>(std::vector<std::string>{"a", "b"});
  prediction_range all(run);
  CHECK(run->began == 0);
  std::vector<int> seen;
  for (const prediction& p : all) {
    seen.push_back(p["b"].as<int>()[0]);
    CHECK(p.size() == 2);
    CHECK_THROWS_AS(static_cast<void>(const_tensor_view(p)), failed_precondition);
    CHECK_THROWS_WITH_AS(p["c"], "no prediction is called \"c\"; there are: \"a\", \"b\"", not_found);
  }
  CHECK(seen == std::vector<int>{0, 1, 2});
  for (const prediction& p : all) seen.push_back(p["a"].as<int>()[0]);
  CHECK(seen.size() == 3);
  CHECK(run->began == 2);
  prediction_range alone(std::make_shared<three>(std::vector<std::string>{"output"}));
  const const_tensor_view only = *alone.begin();
  CHECK(only.as<int>()[0] == 0);
  CHECK(alone.begin()->begin()->first == "output");
}
