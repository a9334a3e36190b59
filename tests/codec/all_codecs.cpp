#include <gradus/codec/all_codecs.hpp>

#include <doctest/doctest.h>

#include <gradus/checkpoint/saver.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <set>
#include <string>

using namespace gradus;

TEST_CASE("the list of codecs and the table of formats have the same lines") {
  std::set<std::string_view> listed{sharded<flat_binary>::name};
  all_codecs::for_each([&]<class C>(std::type_identity<C>) {
    INFO(std::string(C::name));
    CHECK(listed.insert(C::name).second);
    const auto* known = detail::find_known_codec(C::name);
    REQUIRE(known != nullptr);
    CHECK(known->extension == C::extension);
    CHECK(known->proof == C::proof);
  });
  CHECK(listed.size() == all_codecs::size + 1);
  CHECK(std::size(detail::known_codecs) == listed.size());
  CHECK(detail::list_of_proofs() == ".ckpt, .safetensors, .npz, .index or .shards");
}
TEST_CASE("what each of them wrote is found, by its name and by the stem alone") {
  all_codecs::for_each([]<class C>(std::type_identity<C>) {
    INFO(std::string(C::name));
    const testing::temp_dir dir;
    double weight = 2.5;
    saver<C> s;
    const auto stem = join_path(dir.path(), "m");
    state_list list;
    list.scalar("w", weight);
    const auto path = s.save(list, stem, 7).path;
    for (const auto& at : {path, stem + "-7"}) {
      const auto found = all_codecs::with(
          at, posix{}, []<class Found>(const Found&, const std::string&) { return std::is_same_v<Found, C>; });
      CHECK(found);
    }
  });
}
