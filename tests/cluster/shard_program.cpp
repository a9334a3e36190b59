// Programs of parameter servers, found by name and made from bytes.
#include <gradus/cluster/shard_program.hpp>

#include <doctest/doctest.h>

#include <gradus/rules.hpp>
#include <gradus/update/composed.hpp>

using namespace gradus;
using namespace gradus::detail;

namespace {
struct served {
  shard_settings settings;
  double beta1 = 0;
  std::uint32_t shard = 0;
};
served last;
using adam_update = composed<adam, clip_by_global_norm>;
struct kept_program {
  static auto serve_by(shard_settings s, adam_update update) {
    return [s, update](message_network&, std::uint32_t shard) { last = {s, update.rule().beta1, shard}; };
  }
};
shard_program one(std::span<const std::byte>) { return {}; }
shard_program two(std::span<const std::byte>) { return {}; }
const shard_maker a("a", &one), a_again("a", &one), b("b", &one), b_other("b", &two);
}  // namespace

TEST_CASE("a program is found by its name, unless two have it") {
  CHECK((shard_maker::find("a") == &one));
  CHECK((shard_maker::find("b") == nullptr));
  CHECK((shard_maker::find("c") == nullptr));
}

TEST_CASE("a program that is mentioned anywhere is in the list, and is made from what was sent") {
  using sent = sent_program<kept_program, adam_update>;
  (void)&sent::known;
  const auto make = shard_maker::find(sent::name());
  REQUIRE((make != nullptr));
  auto recipe = to_bytes(shard_settings{.divide_by = 12});
  bytes_out out(recipe);
  put_plain(out, std::tuple{adam{.beta1 = 0.25}, clip_by_global_norm{2}});
  const shard_program made = make(recipe);
  // What it is served on is not looked at by this one.
  alignas(16) std::byte nothing[16];
  made.serve(*reinterpret_cast<message_network*>(nothing), 3);
  CHECK((last.settings.divide_by == 12 && last.beta1 == 0.25 && last.shard == 3));
  recipe.pop_back();
  CHECK_THROWS_AS(make(recipe), data_loss);
}
