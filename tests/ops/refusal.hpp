// A refusal is one text, whoever builds the graph: kept by the compiler, thrown by the program.
#pragma once
#include <gradus/graph/graph.hpp>

#include <doctest/doctest.h>

#include <array>
#include <string>

namespace refusal_test {

// Lambdas, called by a copy: clang 19 gives the template argument itself one symbol in all files, though its type is
// each file's own.
template <auto Build>
constexpr std::array<char, 400> kept() {
  gradus::graph g;
  decltype(Build){}(g);
  std::array<char, 400> text{};
  for (int i = 0; i < g.refusal.count; ++i) text[static_cast<unsigned>(i)] = g.refusal[i];
  return text;
}
template <auto Build>
std::string thrown() {
  try {
    gradus::graph g;
    decltype(Build){}(g);
  } catch (const gradus::invalid_argument& e) {
    return e.what();
  }
  return "(nothing was refused)";
}
template <auto Build>
void check(const std::string& text) {
  static constexpr auto at_compile_time = kept<Build>();
  CHECK(std::string(at_compile_time.data()) == text);
  CHECK(thrown<Build>() == text);
}

}  // namespace refusal_test
