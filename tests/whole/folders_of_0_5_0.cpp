// built in every run: a folder that an older version wrote opens after every change
// without sanitizers: it opens what the tests of each codec, stage and rule open under them
// Folders that version 0.5.0 wrote (tests/folders): each codec, state file, chain of deltas, rule's state, position in
// a pipeline, cache and training run opens today and goes on to the bits that 0.5.0 would have ended with.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <gradus/testing/temp_dir.hpp>
#include <map>

#include "../folders/cases.hpp"

TEST_CASE("what 0.5.0 wrote opens, and goes on to the same bits") {
  namespace fs = std::filesystem;
  const fs::path written = GRADUS_SOURCE_DIR "/tests/folders/0.5.0", here = fs::current_path();
  std::map<std::string, std::pair<std::string, std::string>> expected;  // by name: folder, fingerprint
  std::ifstream list(written / "expected.txt");
  for (std::string folder, name, fingerprint;
       std::getline(list, folder, '\t') && std::getline(list, name, '\t') && std::getline(list, fingerprint);)
    expected[name] = {folder, fingerprint};
  const auto cases = folders::all_cases();
  const gradus::testing::temp_dir scratch;
  fs::copy(written / "data", scratch / "data", fs::copy_options::recursive);
  std::size_t opened = 0;
  for (const auto& c : cases) {
    INFO(c.name);
    if (expected.count(c.name) == 0) continue;  // a rule that is younger
    ++opened;
    const auto& [folder, fingerprint] = expected[c.name];
    fs::copy(written / folder, scratch / folder, fs::copy_options::recursive);
    fs::current_path(scratch / folder);
    std::string got;
    try {
      got = c.go_on();
    } catch (const gradus::error& e) {
      got = e.what();
    }
    fs::current_path(here);
    CHECK(got == fingerprint);
  }
  CHECK(opened == expected.size());
}
