#include <gradus/codec/any_codec.hpp>

#include <doctest/doctest.h>
#include <gradus/codec/flat.hpp>
#include <gradus/codec/safetensors.hpp>
#include <gradus/codec/sharded.hpp>
#include <gradus/codec/tensor_bundle.hpp>

#include <cstring>
#include <vector>

using namespace gradus;

namespace {

std::vector<std::byte> all_bytes(const encoded& e) {
  std::vector<std::byte> out;
  for (const auto& f : e.files) {
    const auto name = std::as_bytes(std::span(f.suffix.data(), f.suffix.size()));
    out.insert(out.end(), name.begin(), name.end());
    for (const auto piece : f.pieces) out.insert(out.end(), piece.begin(), piece.end());
  }
  return out;
}

template <class C>
void same_through_the_seam(const C& c) {
  CAPTURE(C::name);
  const std::vector<float> weights = {1.5f, -2, 3};
  snapshot content;
  content.step = 7;
  content.about["library"] = written_by, content.about["codec"] = C::name;
  content.records.push_back({"w", float32, {3}, std::as_bytes(std::span(weights)), false, {}});
  const any_codec any = c;
  CHECK(any.name == std::string_view(C::name));
  CHECK(any.extension == std::string_view(C::extension));
  CHECK(any.proof == std::string_view(C::proof));
  CHECK(any.checks_itself == C::checks_itself);
  CHECK(any.checks_tensors == checks_tensors<C>);
  CHECK(all_bytes(any.encode(content)) == all_bytes(c.encode(content)));
}

}  // namespace

TEST_CASE("a codec says and writes the same as one of any type") {
  same_through_the_seam(flat_binary{});
  same_through_the_seam(safetensors{});
  same_through_the_seam(tensor_bundle{});
  same_through_the_seam(sharded<flat_binary>{});
}

TEST_CASE("settings of a codec come along") {
  snapshot content;
  std::vector<float> table(64, 1.0f);
  for (const char* name : {"a", "b", "c", "d"})
    content.records.push_back({name, float32, {64}, std::as_bytes(std::span(table)), false, {}});
  const sharded<flat_binary> two{.shards = 2}, four{.shards = 4};
  CHECK(any_codec(two).encode(content).files.size() != any_codec(four).encode(content).files.size());
  CHECK(any_codec(four).encode(content).files.size() == four.encode(content).files.size());
}
