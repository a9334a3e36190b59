#include <gradus/tensor/tensor.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace gradus;

TEST_CASE("views know their type and extents, and refuse another") {
  std::vector<float> x{1, 2, 3, 4, 5, 6};
  const tensor_view v(std::span<float>(x), {2, 3});
  CHECK(v.size() == 6);
  CHECK(v.size_bytes() == 24);
  CHECK(v.bytes().size() == 24);
  v.mutable_as<float>()[0] = 10;
  CHECK(x[0] == 10);
  CHECK(v.as<float>().data() == x.data());
  CHECK_THROWS_WITH_AS(v.as<double>(), "this tensor holds float32, not float64; read it as float32, or make it float64",
                       invalid_argument);
  CHECK_THROWS_WITH_AS(v.mutable_as<std::int32_t>(),
                       "this tensor holds float32, not int32; read it as float32, or make it int32", invalid_argument);
  CHECK_THROWS_WITH_AS(tensor_view(std::span<float>(x), {4, 2}), "extents [4, 2] hold 8 elements, the span has 6",
                       invalid_argument);
  const const_tensor_view scalar(std::span<const float>(x).first(1), extents{});
  CHECK(scalar.size() == 1);
}

TEST_CASE("buffers are aligned, zero, padded, and move") {
  aligned_buffer b(100);
  CHECK(b.size() == 100);
  CHECK(reinterpret_cast<std::uintptr_t>(b.data()) % alignment == 0);
  for (std::size_t i = 0; i < align_up(100); ++i) CHECK(b.data()[i] == std::byte{0});
  b.data()[7] = std::byte{1};
  aligned_buffer c(std::move(b));
  CHECK(c.size() == 100);
  CHECK(c.bytes()[7] == std::byte{1});
  CHECK(b.size() == 0);
  CHECK(b.data() == nullptr);
  b = std::move(c);
  CHECK(b.bytes()[7] == std::byte{1});
  CHECK(aligned_buffer(0).data() == nullptr);
  CHECK(align_up(1) == 64);
  CHECK(align_up(64) == 64);
}

TEST_CASE("a large buffer stands on a large page, zero, and moves") {
  for (const std::size_t bytes :
       {std::size_t{1}, 2 * gradus::aligned_buffer::large_page - 1, 2 * gradus::aligned_buffer::large_page,
        5 * gradus::aligned_buffer::large_page + 12345}) {
    CAPTURE(bytes);
    gradus::aligned_buffer b(bytes);
    const auto at = reinterpret_cast<std::uintptr_t>(b.data());
    CHECK(at % gradus::alignment == 0);
    if (bytes >= 2 * gradus::aligned_buffer::large_page) CHECK(at % gradus::aligned_buffer::large_page == 0);
    CHECK(b.data()[0] == std::byte{});
    CHECK(b.data()[bytes - 1] == std::byte{});
    gradus::aligned_buffer c(std::move(b)), d(3);
    d = std::move(c);
    CHECK(reinterpret_cast<std::uintptr_t>(d.data()) == at);
    CHECK(d.size() == bytes);
    d = gradus::aligned_buffer();
    CHECK(d.size() == 0);
  }
}

TEST_CASE("an untouched buffer is all there, for its owner to zero") {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{100}, gradus::aligned_buffer::large_from}) {
    gradus::aligned_buffer b = gradus::aligned_buffer::untouched(bytes);
    CHECK(b.size() == bytes);
    CHECK((b.data() == nullptr) == (bytes == 0));
    CHECK(reinterpret_cast<std::uintptr_t>(b.data()) % gradus::alignment == 0);
    for (std::byte& x : b.bytes()) x = std::byte{1};
  }
}
