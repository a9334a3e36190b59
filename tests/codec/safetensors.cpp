#include "gradus/codec/safetensors.hpp"

#include "codec_suite.hpp"
#include "gradus/testing/temp_dir.hpp"
#include "page.hpp"

#include "../message.hpp"

using namespace codec_suite;

namespace {

using byte_list = std::vector<std::byte>;
constexpr float pair_values[] = {1.0f, -2.0f};

byte_list file_of(std::string_view header, std::size_t data = 0) {
  byte_list out(8 + header.size() + data);
  poke<std::uint64_t>(out, 0, header.size());
  std::memcpy(out.data() + 8, header.data(), header.size());
  return out;
}
std::string problem_of(std::string_view header, std::size_t data = 0) {
  return decode_bytes(safetensors{}, file_of(header, data)).problem;
}
std::string hex_of(std::span<const std::byte> bytes) {
  std::string out;
  for (const std::byte b : bytes)
    for (const int half : {4, 0}) out += "0123456789abcdef"[std::to_integer<unsigned>(b >> half) & 15];
  return out;
}

}  // namespace

TEST_CASE("safetensors: the codec suite") { check_any(safetensors{}); }

TEST_CASE("safetensors: the page's hex dumps are what we write") {
  // The 104 bytes of the first are also what the reference writer makes of it.
  const snapshot small{0, {{"format", "pt"}}, {{"w", float32, {2}, bytes(pair_values), false}}};
  const auto file = joined(safetensors{}.encode(small));
  CHECK(hex_of(file) ==
        "58000000000000007b225f5f6d657461646174615f5f223a7b22666f726d6174223a227074227d2c2277223a7b226474"
        "797065223a22463332222c227368617065223a5b325d2c22646174615f6f666673657473223a5b302c385d7d7d202020"
        "0000803f000000c0");
  page::check_holds(__FILE__, "safetensors.md", file);
  const std::int64_t step[] = {5};
  snapshot whole{5, {{"library", "gradus 0.4.0"}, {"codec", "safetensors"}}, {}};
  whole.records = {{"w", float32, {2}, bytes(pair_values), false},
                   {"input", uint8, {5}, bytes(position), true},
                   {"global_step", int64, {}, bytes(step), false}};
  page::check_holds(__FILE__, "safetensors.md", joined(safetensors{}.encode(whole)));
}

TEST_CASE("safetensors: bytes of the reference writer's own tests") {
  CHECK(hex_of(joined(safetensors{}.encode({}))) == "08000000000000007b7d202020202020");
  CHECK(hex_of(joined(safetensors{}.encode({0, {{"framework", "pt"}}, {}}))) ==
        "28000000000000007b225f5f6d657461646174615f5f223a7b226672616d65776f726b223a227074227d7d2020202020");
  const float values[] = {0, 1, 2, 3, 4, 5};
  for (const auto& [name, dims, begins] :
       {std::tuple{"attn.0", extents{1, 2, 3},
                   "@\0{\"attn.0\":{\"dtype\":\"F32\",\"shape\":[1,2,3],\"data_offsets\":[0,24]}}"},
        std::tuple{"attn0", extents{1, 1, 2, 3},
                   "H\0{\"attn0\":{\"dtype\":\"F32\",\"shape\":[1,1,2,3],\"data_offsets\":[0,24]}}       "}}) {
    const auto file = joined(safetensors{}.encode({0, {}, {{name, float32, dims, bytes(values), false}}}));
    CHECK(file[0] == static_cast<std::byte>(begins[0]));
    const std::string header(reinterpret_cast<const char*>(file.data()) + 8, static_cast<std::size_t>(begins[0]));
    CHECK(header == begins + 2);
    CHECK(std::memcmp(file.data() + 8 + header.size(), values, sizeof values) == 0);
  }
}

TEST_CASE("safetensors: tensors lie by falling alignment, then by name, each aligned for its type") {
  const double f64[] = {1};
  const std::int32_t i32[] = {1};
  const std::uint16_t two[] = {0x3f80};
  snapshot s;
  s.records = {{"a", boolean, {3}, bytes(flags), false},       {"b", uint8, {5}, bytes(position), false},
               {"c", float16, {1}, bytes(two), false},         {"d", bfloat16, {1}, bytes(two), false},
               {"e", int32, {1}, bytes(i32), false},           {"g", float32, {2}, bytes(pair_values), false},
               {"f", float32, {2}, bytes(pair_values), false}, {"h", float64, {}, bytes(f64), false},
               {"i", int64, {1}, bytes(global_step), false}};
  const auto file = joined(safetensors{}.encode(s));
  const auto d = decode_bytes(safetensors{}, file);
  REQUIRE_MESSAGE(d.ok(), d.problem);
  std::string order;
  for (const auto& r : d.content.records) {
    order += r.name;
    CHECK(static_cast<std::size_t>(r.bytes.data() - file.data()) % size_of(r.type) == 0);
  }
  CHECK(order == "ihfgedcba");
}

TEST_CASE("safetensors: what the text allows is read") {
  const auto reads = [](std::string_view header, std::size_t data = 0) {
    const auto d = decode_bytes(safetensors{}, file_of(header, data));
    CHECK_MESSAGE(d.ok(), header << ": " << d.problem);
    return d.content.records.size();
  };
  CHECK(reads("{}") == 0);
  CHECK(reads(R"({"__metadata__":null})") == 0);
  CHECK(reads(R"({"__metadata__":{}})") == 0);
  CHECK(reads(R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}     )", 4) == 1);
  CHECK(reads(R"({"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1) == 1);
  CHECK(reads(R"({"a":{"x":{"y":[1.5,true]},"data_offsets":[0,1],"shape":[1],"more":null,"dtype":"U8"}})", 1) == 1);
  // In any order, and with nothing between others.
  CHECK(
      reads(
          R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},"z":{"dtype":"F64","shape":[3,0],"data_offsets":[1,1]},)"
          R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
          2) == 3);
  // Not aligned, as the samples of 2022 are.
  CHECK(
      reads(
          R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"f":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})",
          5) == 2);
  const auto d = decode_bytes(safetensors{}, file_of(R"({"__metadata__":{"step":"12","blobs":"[\"a\"]","k":"v"},)"
                                                     R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})"));
  CHECK(d.content.step == 12);
  CHECK(d.content.about == metadata{{"k", "v"}});
  CHECK(d.content.records.at(0).blob);
}

TEST_CASE("safetensors: what nobody should trust is refused") {
  const auto tensor = [](std::string_view type, std::string_view shape, std::string_view offsets) {
    return text(R"("a":{"dtype":")", type, R"(","shape":)", shape, R"(,"data_offsets":)", offsets, "}");
  };
  const auto one = [&](std::string_view type, std::string_view shape, std::string_view offsets, std::size_t data) {
    return problem_of(text('{', tensor(type, shape, offsets), '}'), data);
  };
  const std::string good = tensor("U8", "[1]", "[0,1]");
  CHECK(problem_of(text('{', good, '}'), 1).empty());
  SUBCASE("twice the same key") {
    CHECK(problem_of(text('{', good, ',', good, '}'), 1) ==
          "its header is refused: the key \"a\" stands in the object that ends at byte 112 twice");
    CHECK(!problem_of(text('{', good, ",\"\\u0061\"", good.substr(3), '}'), 1).empty());
    CHECK(!problem_of(R"({"__metadata__":{},"__metadata__":{}})").empty());
    CHECK(!problem_of(R"({"__metadata__":{"a":"b","a":"c"}})").empty());
    CHECK(!problem_of(R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1).empty());
  }
  SUBCASE("a header that is none") {
    for (const char* header : {"",
                               " {}",
                               "\n{}",
                               "\xef\xbb\xbf{}",
                               "[]",
                               "{}{}",
                               "{",
                               "{}x",
                               "null",
                               R"({"a":1})",
                               R"({"a":{}})",
                               R"({"a":[]})",
                               R"({"__metadata__":{"a":1}})",
                               R"({"__metadata__":[]})",
                               R"({"__metadata__":{"a":null}})",
                               R"({"a":{"dtype":"U8","shape":[1]}})",
                               R"({"a":{"dtype":"U8","data_offsets":[0,0]}})",
                               R"({"a":{"shape":[0],"data_offsets":[0,0]}})",
                               R"({"a":null})",
                               "{\"\xff\":{}}",
                               R"({"\ud800":{}})"})
      CHECK_MESSAGE(!problem_of(header).empty(), header);
    CHECK(!problem_of(std::string_view("{}\0\0", 4)).empty());
    CHECK(problem_of(text("{\"a\":{\"x\":", std::string(100000, '['))).find("containers in one another") !=
          std::string::npos);
    auto long_header = file_of("{}");
    for (const std::uint64_t n : {~std::uint64_t{0}, ~std::uint64_t{7}, std::uint64_t{1} << 63,
                                  std::uint64_t{100000001}, std::uint64_t{3}, std::uint64_t{100000000}}) {
      poke(long_header, 0, n);
      CHECK_MESSAGE(!decode_bytes(safetensors{}, long_header).ok(), n);
    }
  }
  SUBCASE("numbers that are none") {
    for (const char* shape :
         {"[1.0]", "[1e0]", "[-1]", "[18446744073709551616]", "[\"1\"]", "[null]", "1", "[[1]]", "[true]", "[01]"})
      CHECK_MESSAGE(!one("U8", shape, "[0,1]", 1).empty(), shape);
    for (const char* offsets :
         {"[0]", "[0,1,1]", "[]", "[0.0,1]", "[0,1.0]", "[-0,1]", "[0,1e0]", "[1,0]", "0", "[0,18446744073709551617]"})
      CHECK_MESSAGE(!one("U8", "[1]", offsets, 1).empty(), offsets);
  }
  SUBCASE("places that do not fit") {
    CHECK(one("U8", "[1]", "[1,2]", 2) == "\"a\" lies at 1 to 2 of its data, where it has to begin at 0");
    CHECK(one("U8", "[2]", "[0,2]", 1) == "\"a\" ends at 2 of its data, which has 1 bytes");
    CHECK(one("U8", "[1]", "[0,1]", 2) == "its tensors end at byte 62, and 1 bytes follow that belong to none");
    CHECK(one("F32", "[2]", "[0,7]", 7) == "\"a\" takes 8 bytes by its shape, and has 7");
    std::string ones = "[1";
    for (int i = 0; i < 64; ++i) ones += ",1";
    CHECK(one("U8", ones + "]", "[0,1]", 1) == "\"a\" has a rank above 64");
    std::string pairs;
    for (int i = 0; i < 65537; ++i) pairs += text(",\"", i, "\":\"\"");
    CHECK(problem_of("{\"__metadata__\":{" + pairs.substr(1) + "}}").find("more than 65536 pairs") !=
          std::string::npos);
    CHECK(one("F4", "[1]", "[0,1]", 1) == "\"a\" takes 0 and a part bytes by its shape, and has 1");
    CHECK(one("F64", "[2305843009213693952]", "[0,0]", 0) == "\"a\" has impossible extents");
    CHECK(one("U8", "[4294967296,4294967296]", "[0,0]", 0) == "\"a\" has impossible extents");
    CHECK(one("U8", "[9223372036854775808,0]", "[0,0]", 0).find("impossible extents") != std::string::npos);
    const std::string b = R"("b":{"dtype":"U8","shape":[2],"data_offsets":[)";
    CHECK(!problem_of(text('{', good, ',', b, "0,2]}}"), 2).empty());  // overlap
    CHECK(!problem_of(text('{', good, ',', b, "2,4]}}"), 4).empty());  // hole
    CHECK(problem_of(text('{', good, ',', b, "1,3]}}"), 3).empty());
  }
  SUBCASE("types") {
    for (const char* type : {"f32", "F16 ", "U128", "BOOL8"})  // how many bytes it needs is not known: it is carried
      CHECK_MESSAGE(one(type, "[1]", "[0,1]", 1).empty(), type);
    CHECK(one("", "[1]", "[0,1]", 1) == "\"a\" has an empty dtype");
    auto truth = file_of(text('{', tensor("BOOL", "[1]", "[0,1]"), '}'), 1);
    CHECK(decode_bytes(safetensors{}, truth).ok());
    truth.back() = std::byte{7};
    const auto seven = decode_bytes(safetensors{}, truth);
    CHECK(seven.content.records.at(0).opaque);
    CHECK(seven.warning == "\"a\" is kept as it is and not read (opaque): a byte of it is neither 0 nor 1");
    CHECK(one("U8", "[1,1,1,1,1,1,1]", "[0,1]", 1).empty());
    CHECK(!one("U8", "[1,1,1,1,1,1,2]", "[0,1]", 1).empty());
  }
}

TEST_CASE("safetensors: what the format cannot hold is not written") {
  const auto refusal = [](const snapshot& s) {
    return message_of(status::invalid_argument, [&s] { safetensors{}.encode(s); });
  };
  CHECK(refusal({0, {}, {{"__metadata__", uint8, {0}, {}, false}}}) ==
        "this state cannot be saved as safetensors: no tensor may be called \"__metadata__\" there");
  CHECK(refusal({0, {}, {{"\xff", uint8, {0}, {}, false}}}).find("is no text in UTF-8") != std::string::npos);
  CHECK(refusal({0, {{"a", "\xff"}}, {}}).find("is no text in UTF-8") != std::string::npos);
}

TEST_CASE("safetensors_file: names, types, shapes and elements where they lie") {
  const testing::temp_dir dir;
  const std::string path = dir / "m.safetensors";
  const auto write = [&path](const byte_list& b) {
    publish(posix{}, path, std::string_view(reinterpret_cast<const char*>(b.data()), b.size()));
  };
  write(joined(safetensors{}.encode(small())));
  const safetensors_file f(path);
  CHECK(f.tensors().size() == 6);
  CHECK(f.about().at("model") == "digits");
  REQUIRE(f.find("w") != nullptr);
  CHECK(f.find("w")->type == "F32");
  CHECK(f.find("w")->shape == std::vector<std::uint64_t>{2, 3});
  CHECK(f.find("v") == nullptr);
  const auto w = f.values<float>("w");
  CHECK(std::equal(w.begin(), w.end(), std::begin(weights), std::end(weights)));
  CHECK(reinterpret_cast<const std::byte*>(w.data()) == f.find("w")->bytes.data());
  CHECK(f.values<std::int64_t>("global_step")[0] == 7);
  CHECK(f.values<bool>("flags")[0]);
  CHECK(f.values<double>("none").empty());
  std::int64_t step[1] = {};
  f.read("global_step", std::span(step));
  CHECK(step[0] == 7);
  float three[3];
  CHECK(message_of(status::invalid_argument, [&] {
          f.read("w", std::span(three));
        }).find("has 6 elements, and is read into 3") != std::string::npos);
  CHECK(message_of(status::not_found, [&] { f.values<float>("v"); }) ==
        text("there is no \"v\" in \"", path, "\"; tensors() lists what is there"));
  CHECK(message_of(status::invalid_argument, [&] { f.values<double>("w"); }) ==
        text("\"w\" in \"", path, "\" is F32, and is read as float64"));

  auto unaligned = file_of(
      R"({"b":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]},"f":{"dtype":"F32","shape":[1],"data_offsets":[1,5]},)"
      R"("q":{"dtype":"F4","shape":[1,1,1,1,1,1,1,2],"data_offsets":[5,6]}})",
      6);
  unaligned[unaligned.size() - 6] = std::byte{2};
  poke(unaligned, unaligned.size() - 5, 1.5f);
  write(unaligned);
  const safetensors_file u(path);
  CHECK(u.find("q")->shape.size() == 8);
  float one[1] = {};
  const bool aligned = reinterpret_cast<std::uintptr_t>(u.find("f")->bytes.data()) % 4 == 0;
  if (!aligned)
    CHECK(message_of(status::failed_precondition, [&] { u.values<float>("f"); }) ==
          text("\"f\" in \"", path, "\" is not aligned for float32; copy it with read()"));
  u.read("f", std::span(one));
  CHECK(one[0] == 1.5f);
  CHECK(message_of(status::invalid_argument, [&] { u.values<bool>("b"); }).find("neither 0 nor 1") !=
        std::string::npos);

  write(file_of("{} x"));
  CHECK(message_of(status::data_loss, [&] { safetensors_file{path}; }) ==
        text("\"", path,
             "\" cannot be read as safetensors: its header is refused: at byte 11 expected the end, found 'x'"));
  CHECK(message_of(status::not_found, [&] { safetensors_file(dir / "none"); }).find("No such file") !=
        std::string::npos);
}
