#include <gradus/cluster/wire.hpp>
#include <gradus/cluster/wire_limits.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace gradus::detail;

TEST_CASE("a frame that does not leave its process may have what the format can express") {
  const std::string longest(UINT16_MAX, 'n');
  const std::vector<std::byte> bytes(8);
  const wire_slice one[] = {{longest, gradus::uint8, 0, bytes}};
  message_encoder narrow, wide(wire_limits::of_this_process());
  CHECK_THROWS_AS(narrow.encode({}, one), gradus::resource_exhausted);
  std::vector<std::byte> frame;
  for (const auto p : wide.encode({}, one)) frame.insert(frame.end(), p.begin(), p.end());
  message_decoder in(wire_limits::of_this_process());
  CHECK(in.decode(frame).slices.at(0).name == longest);
}
