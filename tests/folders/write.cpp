// Writes the folders of tests/whole/folders_of_*.cpp. Compile it against the headers of the version that is to be
// remembered (of 0.5.0: git worktree add ../old 1425665), and give it the folder:
//   g++ -std=c++20 -O1 -I../old/include tests/folders/write.cpp -lz -pthread -o write && ./write tests/folders/0.5.0
// It also checks that the version itself goes on from what it wrote. Cases that come later stand at the end of the
// list: write into another folder, and take over the new folders and their lines of expected.txt alone, since the old
// bytes are the point.
#include "cases.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>

int main(int, char** argv) {
  namespace fs = std::filesystem;
  const fs::path root = fs::absolute(argv[1]), scratch = fs::temp_directory_path() / "gradus-folders";
  fs::remove_all(root), fs::remove_all(scratch);
  fs::create_directories(root), fs::create_directories(scratch);
  folders::write_data((root / "data").string());
  folders::write_data((scratch / "data").string());
  std::ofstream list(root / "expected.txt");
  int wrong = 0, number = 0;
  for (const auto& c : folders::all_cases()) {
    const std::string folder = std::to_string(number / 10) + std::to_string(number % 10);
    ++number;
    try {
      fs::create_directories(root / folder);
      fs::current_path(root / folder);
      c.write();
      fs::copy(root / folder, scratch / folder, fs::copy_options::recursive);
      fs::current_path(scratch / folder);
      const std::string expected = c.whole(), got = c.go_on();
      if (expected != got)
        std::printf("%s: %s, but %s when it goes on\n", c.name.c_str(), expected.c_str(), got.c_str()), ++wrong;
      list << folder << '\t' << c.name << '\t' << expected << '\n';
    } catch (const std::exception& e) {
      std::printf("%s: %s\n", c.name.c_str(), e.what()), ++wrong;
    }
  }
  return wrong;
}
