#include <gradus/input/enumerate.hpp>

#include "data.hpp"

using namespace data_tests;

TEST_CASE("a number in front") {
  auto d = range_dataset(7, 10).enumerate(5);
  CHECK(to_text(d.element_spec()) == "index int64 [], value int64 []");
  CHECK(d.cardinality() == 3);
  ints seen;
  for (const datum& e : d) seen.push_back(e.value<std::int64_t>("index") * 100 + e.value<std::int64_t>("value"));
  CHECK(seen == ints{507, 608, 709});
  CHECK(message_of(status::invalid_argument, [] { range_dataset(3).enumerate().enumerate(); }).find("already") !=
        std::string::npos);
  resumes([] { return range_dataset(5).enumerate(-2); });
}
