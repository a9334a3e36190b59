#include "gradus/cluster/hello.hpp"

#include "../message.hpp"

using namespace gradus;

namespace {
cluster_fingerprint digits() {
  return {.version = "1.2.3",
          .model = "digits",
          .rule = "adam",
          .arithmetic = "fast",
          .settings = {{"beta1", "0.9"}, {"rate", "0.001"}},
          .variables = {{"w", float32, {784, 10}}, {"b", float32, {10}}, {"step", int64, {}}}};
}
// What is said after `change` of one side.
template <class Change>
std::string said(Change change) {
  cluster_fingerprint other = digits();
  change(other);
  const std::string one = difference_of(digits(), "worker 0", other, "ps 1");
  CHECK(difference_of(other, "ps 1", digits(), "worker 0").empty() == one.empty());
  return one;
}
}  // namespace

TEST_CASE("a fingerprint comes back from its bytes") {
  CHECK(cluster_fingerprint_from(to_bytes(digits())) == digits());
  CHECK(cluster_fingerprint_from(to_bytes({})) == cluster_fingerprint{});
  CHECK(cluster_fingerprint{}.version == GRADUS_VERSION);
}

TEST_CASE("a difference is named") {
  CHECK(said([](auto&) {}).empty());
  CHECK(said([](auto& f) { f.version = "1.2.4"; }) ==
        "the library version of worker 0 is 1.2.3, that of ps 1 is 1.2.4");
  CHECK(said([](auto& f) { f.model = "x"; }) == "the model of worker 0 is \"digits\", that of ps 1 is \"x\"");
  CHECK(said([](auto& f) { f.rule = "sgd"; }) == "the rule of worker 0 is \"adam\", that of ps 1 is \"sgd\"");
  CHECK(said([](auto& f) { f.arithmetic = "portable"; }) ==
        "the arithmetic of worker 0 is \"fast\", that of ps 1 is \"portable\"");
  CHECK(said([](auto& f) { f.settings[1].second = "0.01"; }) ==
        "the setting \"rate\" of worker 0 is 0.001, that of ps 1 is 0.01");
  CHECK(said([](auto& f) { f.settings.erase(f.settings.begin()); }) ==
        "the setting \"beta1\" of worker 0 is unknown to ps 1");
  CHECK(said([](auto& f) { f.settings.pop_back(); }) == "the setting \"rate\" of worker 0 is unknown to ps 1");
  CHECK(said([](auto& f) {
          f.settings.insert(f.settings.begin(), {"amsgrad", "1"});
        }) == "the setting \"amsgrad\" of ps 1 is unknown to worker 0");
  CHECK(said([](auto& f) { f.settings.emplace_back("zeta", "1"); }) ==
        "the setting \"zeta\" of ps 1 is unknown to worker 0");
  CHECK(said([](auto& f) {
          f.variables[0].dims = {784, 11};
        }) == "the variable \"w\" of worker 0 is float32 [784, 10], that of ps 1 is float32 [784, 11]");
  CHECK(said([](auto& f) { f.variables[1].type = float64; }) ==
        "the variable \"b\" of worker 0 is float32 [10], that of ps 1 is float64 [10]");
  CHECK(said([](auto& f) { std::swap(f.variables[0], f.variables[1]); }) ==
        "variable 0 of worker 0 is \"w\", that of ps 1 is \"b\"");
  CHECK(said([](auto& f) { f.variables.pop_back(); }) == "the variable \"step\" of worker 0 is unknown to ps 1");
  CHECK(said([](auto& f) {
          f.variables.push_back({"v", float32, {}});
        }) == "the variable \"v\" of ps 1 is unknown to worker 0");
  cluster_fingerprint other = digits();
  other.rule = "sgd";
  CHECK(
      message_of(status::failed_precondition, [&] { must_agree(digits(), "worker 0", other, "ps 1"); }) ==
      "these tasks cannot train one model: the rule of worker 0 is \"adam\", that of ps 1 is \"sgd\"; start all tasks "
      "from one build of one program");
  must_agree(digits(), "worker 0", digits(), "ps 1");
}

TEST_CASE("malformed fingerprints") {
  const auto whole = to_bytes(digits());
  const auto refusal = [](std::span<const std::byte> b) {
    return message_of(status::data_loss, [&] { cluster_fingerprint_from(b); });
  };
  for (std::size_t n = 0; n < whole.size(); ++n)
    CHECK(refusal(std::span(whole).first(n)).find("malformed fingerprint of a peer: ") == 0);
  auto forged = whole;
  forged.push_back(std::byte{});
  CHECK(refusal(forged) == "malformed fingerprint of a peer: 1 bytes are left behind its end");
  forged = whole;
  forged[0] = std::byte{2};
  CHECK(refusal(forged) == "malformed fingerprint of a peer: it is of version 2, here it is version 1");
  // "1.2.3", "digits", "adam", "fast", then the number of settings.
  const std::size_t settings = 4 + 9 + 10 + 8 + 8;
  forged = whole;
  forged[settings + 3] = std::byte{0x40};
  CHECK(refusal(forged).find("it says that 1073741826 entries follow, and ") != std::string::npos);
  forged = whole;
  forged[settings + 4 + 4] = std::byte{'z'};
  CHECK(refusal(forged) == "malformed fingerprint of a peer: its setting \"rate\" comes behind \"zeta1\"");
  const auto w = digits().variables[0];
  auto bad = digits();
  bad.variables[0].type = dtype::none;
  CHECK(refusal(to_bytes(bad)) ==
        "malformed fingerprint of a peer: the variable \"w\" has an element type that is none");
  bad.variables = {w};
  forged = to_bytes(bad);
  forged[forged.size() - 17] = std::byte{7};
  CHECK(refusal(forged) == "malformed fingerprint of a peer: the variable \"w\" has rank 7; expected at most 6");
}
