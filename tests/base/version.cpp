#include <gradus/base/version.hpp>

#include <doctest/doctest.h>

#include <fstream>
#include <string>

TEST_CASE("the version is three numbers and their text") {
  CHECK(GRADUS_VERSION_MAJOR >= 0);
  CHECK(std::string(GRADUS_VERSION) == std::to_string(GRADUS_VERSION_MAJOR) + "." +
                                           std::to_string(GRADUS_VERSION_MINOR) + "." +
                                           std::to_string(GRADUS_VERSION_PATCH));
}

TEST_CASE("the changelog speaks of this version first") {
  std::ifstream changelog(GRADUS_SOURCE_DIR "/CHANGELOG.md");
  REQUIRE(changelog);
  std::string line;
  while (std::getline(changelog, line) && !line.starts_with("## ")) {
  }
  CHECK(line.starts_with("## " GRADUS_VERSION));
}
