#include <gradus/graph/device_spec.hpp>

#include <gradus/base/error.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace gradus;

namespace {
std::string canonical(std::string_view s) { return device_spec::from_string(s).to_string(); }
std::string merged(std::string_view a, std::string_view b) {
  return device_spec::from_string(a).merged(device_spec::from_string(b)).to_string();
}
std::string refusal(std::string_view s) {
  try {
    device_spec::from_string(s);
  } catch (const invalid_argument& e) {
    return e.what();
  }
  return "(nothing was refused)";
}
}  // namespace

TEST_CASE("device strings: parts in any form, and the one form they are written in") {
  CHECK(canonical("") == "");
  CHECK(canonical("/job:ps") == "/job:ps");
  CHECK(canonical("/job:ps/replica:1/task:0/device:CPU:0") == "/job:ps/replica:1/task:0/device:CPU:0");
  CHECK(canonical("/task:3/job:worker") == "/job:worker/task:3");
  CHECK(canonical("/cpu:0") == "/device:CPU:0");
  CHECK(canonical("/GPU:2") == "/device:GPU:2");
  CHECK(canonical("/gpu:*") == "/device:GPU:*");
  CHECK(canonical("/gpu") == "/device:GPU:*");
  CHECK(canonical("/device:CPU") == "/device:CPU:*");
  CHECK(canonical("/device:TPU:*") == "/device:TPU:*");
  CHECK(canonical("/job:ps/cpu:0") == "/job:ps/device:CPU:0");
  const device_spec s = device_spec::from_string("/job:ps/task:7");
  CHECK((s.job == "ps" && s.task == 7 && !s.replica.has_value() && s.device_type.empty()));
}

TEST_CASE("device strings: what one leaves open is the other's") {
  CHECK(merged("/job:ps/task:0", "/cpu:0") == "/job:ps/task:0/device:CPU:0");
  CHECK(merged("/job:ps/task:0", "/job:moon") == "/job:moon/task:0");
  CHECK(merged("/job:ps/cpu:1", "/gpu:*") == "/job:ps/device:GPU:1");  // "*" gives no index, as in TensorFlow
  CHECK(merged("/gpu:0", "/gpu:*") == "/device:GPU:0");
  CHECK(merged("/cpu:1", "/gpu:2") == "/device:GPU:2");
  CHECK(merged("/replica:1", "/replica:2/task:0") == "/replica:2/task:0");
  CHECK(merged("", "/job:a") == "/job:a");
  CHECK(merged("/job:a", "") == "/job:a");
}

TEST_CASE("device strings: what is none") {
  CHECK(refusal("/jobs:ps") ==
        "\"/jobs:ps\" is no device: \"jobs:ps\" is not known; expected /job:NAME/replica:N/task:N/device:TYPE:N, or "
        "parts of it");
  CHECK(refusal("/job:").find("\"job:\" has no name") != std::string::npos);
  CHECK(refusal("/job:ps/task:x").find("\"task:x\" has no number") != std::string::npos);
  CHECK(refusal("/task:-1").find("has no number") != std::string::npos);
  CHECK(refusal("/task").find("has no number") != std::string::npos);
  CHECK(refusal("/replica:99999999999").find("has no number") != std::string::npos);
  CHECK(refusal("/cpu:").find("has no number") != std::string::npos);
  CHECK(refusal("/cpu:0/gpu:0").find("is a second device") != std::string::npos);
  CHECK(refusal("/device:").find("has no type") != std::string::npos);
}
