// Trains the model of tests/whole/trained_by.hpp by one runtime, from the newest checkpoint of a directory on:
//
//   trained_by WAY MODEL_DIR STEPS SAVE_STEPS
#include "../whole/trained_by.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>

int main(int count, char** words) {
  if (count != 5) return std::fprintf(stderr, "expected WAY MODEL_DIR STEPS SAVE_STEPS\n"), 2;
  try {
    trained_by::train(words[1], words[2], std::atol(words[3]), std::atol(words[4]));
  } catch (const std::exception& e) {
    return std::fprintf(stderr, "%s\n", e.what()), 1;
  }
  return 0;
}
