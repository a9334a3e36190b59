#include <gradus/graph/placed_op.hpp>

#include <doctest/doctest.h>

#include <concepts>

using namespace gradus;

TEST_CASE("a device function sees a node's name, op, device, type and shape") {
  const device_function f = [](const placed_op& op) {
    return std::string(op.name) + "|" + std::string(op.type) + "|" + std::string(op.device) + "|" +
           std::to_string(op.dims.rank) + (op.output == float32 ? "|f" : "|?");
  };
  CHECK(f({.name = "a/b", .type = "matmul", .device = "/job:ps", .output = float32, .dims = {2, 3}}) ==
        "a/b|matmul|/job:ps|2|f");
  CHECK(f({}) == "|||0|?");
  static_assert(!std::constructible_from<device_function, std::string (*)()>);
}
