// The messages of sessions as frames.
#include <gradus/cluster/session_calls.hpp>

#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "../message.hpp"

using namespace gradus;
using namespace gradus::detail;

namespace {
std::vector<std::byte> framed(const message_head& h, std::span<const std::byte> said,
                              std::span<const std::span<const std::byte>> tensors) {
  const session_slices slices(said, tensors);
  message_encoder out;
  std::vector<std::byte> frame;
  for (const auto piece : out.encode(h, slices.slices())) frame.insert(frame.end(), piece.begin(), piece.end());
  return frame;
}
}  // namespace

TEST_CASE("a call comes back as it was said, its tensors aligned and in their order") {
  run_call c;
  c.seed = 9, c.fetches = {3, 1}, c.fed = {7, 8}, c.has_timeout = true, c.timeout_secs = 0.25, c.trace = 2;
  c.feeds = {{float32, {2, 1}}, {int64, {}}};
  const std::array<float, 2> x{1, 2};
  const std::array<std::int64_t, 1> n{5};
  const std::vector<std::span<const std::byte>> tensors{std::as_bytes(std::span(x)), std::as_bytes(std::span(n))};
  const auto frame =
      framed({.kind = message_kind::call, .incarnation = 4, .sequence = 2, .about = 3}, bytes_of_said(c), tensors);
  const session_frame f = keep_frame(frame);
  CHECK(f.head.incarnation == 4);
  const auto same = said_in<run_call>(f);
  CHECK(same.seed == 9);
  CHECK(same.fetches == c.fetches);
  CHECK(same.fed == c.fed);
  CHECK(same.timeout_secs == 0.25);
  REQUIRE(f.tensors.size() == 2);
  const const_tensor_view v = tensor_of(same.feeds[0], f.tensors[0]), w = tensor_of(same.feeds[1], f.tensors[1]);
  CHECK(reinterpret_cast<std::uintptr_t>(v.data) % 64 == 0);
  CHECK(v.dims == extents{2, 1});
  CHECK(v.as<float>()[1] == 2);
  CHECK(w.as<std::int64_t>()[0] == 5);
}

TEST_CASE("a tensor whose bytes are not those of its shape is refused, however large it says it is") {
  const std::vector<std::byte> bytes(16);
  CHECK(tensor_of({float32, {4}}, bytes).size() == 4);
  CHECK(tensor_of({float32, {0, 1'000'000'000'000}}, {}).size() == 0);
  const std::int64_t huge = std::int64_t{1} << 62;
  for (const sent_tensor& h :
       {sent_tensor{float32, {5}}, sent_tensor{float32, {-4}}, sent_tensor{float64, {4}},
        sent_tensor{dtype::none, {16}}, sent_tensor{float32, {huge, huge, huge}}, sent_tensor{float32, {4, huge}}})
    CHECK(says(message_of(status::data_loss, [&] { tensor_of(h, bytes); }), "16 bytes"));
}

TEST_CASE("a frame without a call, and a hello of another kind of peer") {
  message_encoder out;
  std::vector<std::byte> frame;
  for (const auto piece : out.encode({.kind = message_kind::hello}, {{"hello", dtype::uint8, 0, frame}}))
    frame.insert(frame.end(), piece.begin(), piece.end());
  CHECK_FALSE(is_hello_of_sessions(frame));
  CHECK(says(message_of(status::data_loss, [&] { keep_frame(frame); }), "found \"hello\""));
  CHECK(is_hello_of_sessions(framed({.kind = message_kind::hello}, bytes_of_said(session_hello{1}), {})));
  CHECK_FALSE(is_hello_of_sessions(framed({.kind = message_kind::call}, {}, {})));
}
