#include "gradus/codec/manifest.hpp"
#include "gradus/codec/state_file.hpp"
#include "gradus/store/crc32c.hpp"

#include "../checkpoint/saving.hpp"

using namespace gradus;

namespace {

const checkpoint_manifest example{
    1, "safetensors", "gradus 0.4.0", "a \"model\"\n", {{".safetensors", 1234, 0x89abcdef}, {".meta", 0, 0}}};

// With the checksum that a forger would put there.
std::string sealed(const std::string& lines) { return lines + "crc32c: " + detail::hex(crc32c(lines)) + "\n"; }

std::string problem_of(const std::string& content, status expected = status::data_loss) {
  checkpoint_manifest m;
  m.codec = "untouched";
  status kind = status::internal;
  const auto problem = parse_manifest(content, m, kind);
  CHECK(kind == expected);
  CHECK(problem.empty() == (m.codec != "untouched"));
  return problem;
}

}  // namespace

TEST_CASE("manifest: what is written is read") {
  const auto written = to_text(example);
  CHECK(written ==
        "gradus manifest 1\ncodec: safetensors\nlibrary: gradus 0.4.0\nmodel: \"a \\\"model\\\"\\012\"\n"
        "file: \".safetensors\" 1234 89abcdef\nfile: \".meta\" 0 00000000\ncrc32c: " +
            written.substr(written.size() - 9));
  checkpoint_manifest m;
  status kind{};
  REQUIRE(parse_manifest(written, m, kind) == "");
  CHECK(m.version == 1);
  CHECK(m.codec == "safetensors");
  CHECK(m.writer == "gradus 0.4.0");
  CHECK(m.model == example.model);
  REQUIRE(m.files.size() == 2);
  REQUIRE(m.find(".safetensors") != nullptr);
  CHECK(m.find(".safetensors")->bytes == 1234);
  CHECK(m.find(".safetensors")->crc == 0x89abcdef);
  CHECK(m.find(".ckpt") == nullptr);
  CHECK(to_text(m) == written);
}

TEST_CASE("manifest: it measures files piece by piece") {
  // RFC 3720, B.4: 32 bytes of zeros have the CRC-32C 8a9136aa.
  const std::vector<std::byte> zeros(32);
  encoded e;
  e.files.push_back({".data", {std::span(zeros).first(5), std::span(zeros).subspan(5)}});
  const auto m = manifest_of("npz", {{"model", "digits"}}, e);
  CHECK(m.codec == "npz");
  CHECK(m.writer == written_by);
  CHECK(m.model == "digits");
  REQUIRE(m.files.size() == 1);
  CHECK(m.files[0].bytes == 32);
  CHECK(m.files[0].crc == 0x8a9136aa);
}

TEST_CASE("manifest: every flipped bit, every truncation and every extension is refused") {
  const auto written = to_text(example);
  for (std::size_t bit = 0; bit < 8 * written.size(); ++bit) {
    auto damaged = written;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    REQUIRE(!problem_of(damaged).empty());
  }
  for (std::size_t n = 0; n < written.size(); ++n) REQUIRE(!problem_of(written.substr(0, n)).empty());
  for (const char* more : {"\n", " ", "x", "crc32c: 00000000\n"}) CHECK(!problem_of(written + more).empty());
  CHECK(problem_of("PK\3\4") == "it does not begin with \"gradus manifest \"");
  CHECK(problem_of(written.substr(0, written.size() - 1)) ==
        "it does not end with its checksum, so it is cut short or damaged");
}

TEST_CASE("manifest: a newer one is not damage") {
  CHECK(problem_of(sealed("gradus manifest 2\nsomething: else\n"), status::failed_precondition) ==
        "it has version 2, which is newer than version 1 that this library (" + std::string(written_by) +
            ") reads; use a newer library");
}

TEST_CASE("manifest: forged lines with a fitting checksum") {
  const auto forged = [](const std::string& lines) { return problem_of(sealed("gradus manifest 1\n" + lines)); };
  CHECK(forged("") == "it names no file");
  CHECK(forged("codec: x\n") == "it names no file");
  CHECK(forged("file: \".a\" 1 00000000\n") == "");
  CHECK(forged("file: \".a\" 1 00000000\nfile: \".a\" 2 00000000\n") == "it names the file \".a\" twice");
  for (const char* line :
       {"file: .a 1 00000000", "file: \".a\"", "file: \".a\" 1", "file: \".a\" -1 00000000",
        "file: \".a\" 18446744073709551616 00000000", "file: \".a\" 1 100000000", "file: \".a 1 00000000",
        "file: \"\\9\" 1 00000000", "file: \".a\" 1 0000000g", "model: digits", "nonsense", "key: value", ": ", ""})
    CHECK(forged(std::string(line) + "\nfile: \".b\" 1 0\n") ==
          "its line 2 is none that this library writes: " + std::string(line));
  for (const char* version : {"0", "-1", "", "1x", "99999999999999999999"})
    CHECK(problem_of(sealed("gradus manifest " + std::string(version) + "\n")).starts_with("its line 1 is none"));
}

TEST_CASE("is_checkpoint_suffix: only what a checkpoint's files are called") {
  const auto is = [](std::string_view s) { return detail::is_checkpoint_suffix(s, ".ckpt"); };
  for (const char* s : {".ckpt", ".manifest", ".index", ".meta", ".shards", ".data-00000-of-00002",
                        "-00001-of-00002.safetensors", "-00000-of-00002.data-00000-of-00001", "-00000-of-00001.index"})
    CHECK_MESSAGE(is(s), s);
  for (const char* s : {"", ".txt", ".r1.ckpt", "5.ckpt", "-00000-of-0000", "-0000x-of-00002.ckpt", ".data",
                        ".data-00000-of-00002.a.b", "-00000-of-00002-00000-of-00002", "-00000-of-00002.a-b", "/.ckpt"})
    CHECK_MESSAGE(!is(s), s);
  CHECK(detail::is_checkpoint_file("model-150.ckpt", ".ckpt"));
  CHECK(detail::is_checkpoint_file("my-model.v2-150-00000-of-00002.npz", ".shards"));
  CHECK(detail::is_checkpoint_file("model-150.data-00000-of-00002", ""));
  CHECK(!detail::is_checkpoint_file("notes.txt", ".ckpt"));
  CHECK(!detail::is_checkpoint_file("model-150", ""));
}
