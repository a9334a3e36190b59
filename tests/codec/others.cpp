#include "gradus/codec/others.hpp"

#include <doctest/doctest.h>

using namespace gradus::detail;

// What each is told, through the door that asks, is in tests/codec/detect.cpp.
TEST_CASE("others: names and first bytes of files that are ours, or nobody's, are not taken for another's") {
  for (const char* name : {"model-7.ckpt", "model.ckpt-7", "w.safetensors", "w.npz", "model.index", "checkpoint", ""})
    for (const char* begin : {"", "P", "PK\3\4", "GRADUSCK", "hello world", "{\"a\": 1}", "\x08\x01"})
      if (const std::string_view path = name; !(path.ends_with(".ckpt") && begin[0] == 'P' && begin[1] == 'K'))
        CHECK_MESSAGE(advice_for(name, begin, "").empty(), name);
  CHECK(first_member_of_zip("PK\3\4").empty());
}

TEST_CASE("others: shards of TensorFlow's first format are known by their names") {
  CHECK(is_v1_shard("model.ckpt-7-00000-of-00002"));
  CHECK(is_v1_shard("m-?\?\?\?\?-of-00012"));
  for (const char* name : {"-00000-of-00002", "m-0000-of-00002", "m-00000-of-0000x", "m.data-00000-of-00001.x",
                           "m-000?0-of-00002", "m_00000-of-00002", "m.data-00000-of-00001", "m-00000-to-00002"})
    CHECK_MESSAGE(!is_v1_shard(name), name);
}
