// The states of a worker: its waits, and their names in errors.
#include "gradus/cluster/protocol/worker_state.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace gradus::detail;

TEST_CASE("a worker waits where another has the word, and each state has its words") {
  using s = worker_state;
  for (const s one :
       {s::joining, s::giving, s::beginning, s::pulling, s::pushing, s::waiting, s::holding, s::fetching, s::leaving})
    CHECK(is_wait(one));
  for (const s one : {s::idle, s::preparing, s::computing, s::over, s::left}) CHECK_FALSE(is_wait(one));
  for (int k = 0; k <= static_cast<int>(s::left); ++k) CHECK(std::string(doing(static_cast<s>(k))) != "");
  CHECK(std::string(doing(s::computing)) == "computes");
  CHECK(std::string(doing(s::giving)) == "begins");
  CHECK(std::string(doing(s::waiting)) == "has a push under way");
  CHECK(std::string(doing(s::over)) == "has nothing to compute");
}
