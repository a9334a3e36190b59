// A template: tests/places/places.py adds it.
#include <gradus/codec/brief_binary.hpp>

#include "codec_suite.hpp"
#include "page.hpp"

using namespace codec_suite;

TEST_CASE("brief_binary: the codec suite") { check<brief_binary>(); }

TEST_CASE("brief_binary: the page's hex dump is what is written") {
  static constexpr float w[] = {1.0f, -2.0f};
  page::check_holds(__FILE__, "brief_binary.md",
                    joined(brief_binary{}.encode({5, {}, {{"w", float32, {2}, bytes(w), false}}})));
}
