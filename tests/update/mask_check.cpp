#include <gradus/update/mask_check.hpp>

#include <gradus/update/chain.hpp>
#include <gradus/update/composed.hpp>
#include <gradus/update/lookahead.hpp>
#include <gradus/update/multi.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/weight_decay.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../message.hpp"

using namespace gradus;

namespace {
struct variable {
  std::string name;
  extents dims;
};
const std::vector<variable> two{{"a/kernel", {2, 3}}, {"a/bias", {3}}};

template <class... Policies>
std::string said(const std::vector<variable>& all, const Policies&... policies) {
  return message_of(status::invalid_argument, [&] {
    detail::check_masks(composed{policies...}, [&](auto f) {
      for (const variable& v : all) f(v.name, v.dims);
    });
  });
}
constexpr std::string_view part = "the mask of a weight_decay, or of another part of a chain, matches no variable of ";
}  // namespace

TEST_CASE("each part's mask is looked at, wherever it stands in the chain") {
  const weight_decay biases{0.1, named{"a/bias"}}, none{0.1, named{"b/"}};
  const auto refused = [](const std::string& text) { return text.starts_with(part); };
  CHECK(said(two, chain{biases, adam{}}) == "no error");
  CHECK(refused(said(two, chain{none, adam{}})));
  CHECK(refused(said(two, chain{biases, none, adam{}})));
  CHECK(refused(said(two, chain{none, biases, adam{}, lookahead{}})));
  CHECK(refused(said(two, multi{on{named{"a/kernel"}, adam{}}, chain{none, adam{}}})));
  CHECK(said(two, chain{weight_decay{0.1}, adam{}}) == "no error");
  CHECK(said({}, chain{none, adam{}}) == "no error");  // no variable is known yet
}

TEST_CASE("a message lists the names that fit, whatever their number") {
  std::vector<variable> many;
  for (int i = 0; i < 100; ++i) many.push_back({"layer_" + std::to_string(i), {2}});
  const std::string text = said(many, freeze{named{"encoder"}}, adam{});
  CHECK(text.starts_with("the mask of freeze matches no variable of \"layer_0\", \"layer_1\""));
  CHECK(text.ends_with("; mend the mask, or leave freeze out"));
  CHECK(text.size() < 400);
}
