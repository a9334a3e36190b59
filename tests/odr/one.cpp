#include "model.hpp"

answer one() {
  gradus::random_stream stream{.seed = 7};
  return {&model, model(stream)};
}
