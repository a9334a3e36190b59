#include "model.hpp"

answer two() {
  gradus::random_stream stream{.seed = 7};
  return {&model, model(stream)};
}
