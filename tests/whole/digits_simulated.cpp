// costs: 300
// runs: digits
// The demo as users start it in virtual time: `digits --cluster simulated --seed 7`.
#include <doctest/doctest.h>

#include "demo.hpp"

TEST_CASE("digits --cluster simulated --seed 7: the bits of threads, and the same history twice") {
  constexpr int steps = 40;
  const gradus::testing::temp_dir place;
  // The line about the history, which has its hash.
  const auto run = [&](const std::string& dir, const std::string& how) {
    processes::process p(
        demo::words(place, dir, {"--cluster", how, "--seed", "7", "--ps", "2", "--workers", "2"}, steps),
        place / "output");
    p.wait();
    const auto bytes = gradus::read_file(gradus::posix{}, place / "output");
    const std::string said(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    REQUIRE_MESSAGE(p.succeeded(), said);
    const auto at = said.find("simulated with seed 7: ");
    return at == std::string::npos ? "" : said.substr(at, said.find('\n', at) - at);
  };
  CHECK(run("threads", "in_process") == "");
  const std::string history = run("once", "simulated");
  MESSAGE(history);
  CHECK(!history.empty());
  CHECK(run("again", "simulated") == history);
  const auto expected = demo::trained(place, "threads");
  CHECK(expected.step == steps);
  for (const char* dir : {"once", "again"}) CHECK(run_files::difference(demo::trained(place, dir), expected) == "");
}
