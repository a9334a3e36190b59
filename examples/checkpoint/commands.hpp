// What the tool does. Each command prints its result and gives the exit code: 0, or 1 for "they differ", "something is
// damaged". What cannot be done at all is raised (main.cpp: 1 for damage, else 2).
#pragma once
#include <string>
#include <vector>

#include "files.hpp"

namespace tool {

struct settings {
  bool json = false;
  naming names;
};

// look.cpp
int list(const settings& s, const std::string& path);
int show(const settings& s, const std::string& path, std::size_t values, const std::string& only);
struct tolerance {
  double absolute = 0, relative = 0;
};
int diff(const settings& s, const std::string& a, const std::string& b, const tolerance& allowed);
int verify(const settings& s, const std::vector<std::string>& paths);

// change.cpp
int convert(const settings& s, const std::string& from, destination to, const std::vector<std::string>& dropped);
int compact(const settings& s, const std::vector<std::string>& chain, destination to);

}  // namespace tool
