#include "gradus/codec/open.hpp"
#include "gradus/codec/manifest.hpp"
#include "gradus/codec/state_file.hpp"
#include "gradus/store/crc32c.hpp"

#include "../checkpoint/saving.hpp"
#include "gradus/codec/flat.hpp"
#include "gradus/testing/faulty_files.hpp"

using namespace gradus;
using gradus::testing::faulty_files;
using saving::contains;

namespace {

// A codec of two files and no checksums: the record's bytes, and its name. A third file of nothing is optional.
struct plain {
  using policy_for = kind::codec;
  static constexpr std::string_view name = "plain", extension = ".plain", proof = extension;
  static constexpr bool checks_itself = false;
  encoded encode(const snapshot& content) const {
    encoded e;
    const auto& r = content.records.at(0);
    const auto* p = reinterpret_cast<const std::byte*>(r.name.data());
    e.files.push_back({".data-00000-of-00001", {r.bytes}});
    const auto named = e.own({p, p + r.name.size()});
    e.files.push_back({std::string(extension), {named}});
    return e;
  }
  decoded decode(checkpoint_files& files) const {
    decoded out;
    std::span<const std::byte> named, bytes;
    if (const auto p = files.open(extension, named)) return detail::unopened(p);
    if (const auto p = files.open(".data-00000-of-00001", bytes)) return detail::unopened(p);
    std::string text(reinterpret_cast<const char*>(named.data()), named.size());
    if (text != "w") {
      out.problem = "it stumbled over the name";
      return out;
    }
    out.content.records.push_back({text, uint8, {static_cast<std::int64_t>(bytes.size())}, bytes, false});
    return out;
  }
};
// Reads only its first file.
struct careless : plain {
  decoded decode(checkpoint_files& files) const {
    std::span<const std::byte> named;
    if (const auto p = files.open(extension, named)) return detail::unopened(p);
    return {};
  }
};
static_assert(codec<plain> && codec<careless>);

const std::string bytes = "0123456789";
constexpr const char *stem = "d/m-3", *data = "d/m-3.data-00000-of-00001", *named = "d/m-3.plain",
                     *manifest = "d/m-3.plain.manifest";

faulty_files written() {
  const faulty_files fs;
  snapshot s;
  s.records = {{"w", uint8, {10}, std::as_bytes(std::span(bytes)), false}};
  const auto e = plain{}.encode(s);
  make_directories(fs, "d");
  for (const auto& f : e.files) publish(fs, stem + f.suffix, byte_pieces(f.pieces));
  publish(fs, manifest, to_text(manifest_of(plain::name, {}, e)));
  return fs;
}
template <class C = plain>
decoded open(const faulty_files& fs, const std::string& path = named, std::uint64_t most = UINT64_MAX) {
  opened_checkpoint<C, faulty_files> c({}, fs, path, most);
  CHECK(fs.open_handles() == 0);
  auto r = std::move(c.result());
  for (auto& record : r.content.records) {  // the files go away with c
    auto& kept = r.owned.emplace_back(record.bytes.begin(), record.bytes.end());
    record.bytes = kept;
  }
  CHECK(r.ok() != r.content.records.empty());
  return r;
}
void replace(const faulty_files& fs, const char* path, std::string_view content) {
  const auto* p = reinterpret_cast<const std::byte*>(content.data());
  fs.bytes(path).assign(p, p + content.size());
}
std::string text_of(const faulty_files& fs, const char* path) {
  const auto& b = fs.bytes(path);
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}

}  // namespace

TEST_CASE("opened_checkpoint: a whole checkpoint is read, and every file is held against the manifest") {
  const auto r = open(written());
  REQUIRE_MESSAGE(r.ok(), r.problem);
  CHECK(r.warning.empty());
  CHECK(r.content.records[0].bytes.size() == 10);
}

TEST_CASE("opened_checkpoint: damage is told by the manifest, with file, bytes and checksums") {
  auto fs = written();
  fs.bytes(data)[3] ^= std::byte{1};
  CHECK(open(fs).problem ==
        "its file \"m-3.data-00000-of-00001\" has the checksum " +
            detail::hex(crc32c(std::span<const std::byte>(fs.bytes(data)))) +
            " over its 10 bytes (from 0 on), where its manifest says 280c069e");  // CRC-32C of "0123456789"
  CHECK(open(fs).kind == status::data_loss);
  fs.bytes(data).pop_back();
  CHECK(open(fs).problem == "its file \"m-3.data-00000-of-00001\" has 9 bytes, where its manifest says 10");
  fs = written();
  fs.bytes(data).push_back(std::byte{0});
  CHECK(open(fs).problem == "its file \"m-3.data-00000-of-00001\" has 11 bytes, where its manifest says 10");
  fs = written();
  replace(fs, named, "v");  // the codec stumbles, the manifest knows why
  CHECK(contains(open(fs).problem, "its file \"m-3.plain\" has the checksum "));
  fs = written();
  replace(fs, manifest, text_of(fs, manifest).substr(0, 50));
  CHECK(open(fs).problem ==
        "its manifest \"m-3.plain.manifest\" cannot be used: it does not end with its checksum, so it is cut short or "
        "damaged");
}

TEST_CASE("opened_checkpoint: a file that the codec passes over is checked all the same") {
  auto fs = written();
  opened_checkpoint<careless, faulty_files> fine({}, fs, named);
  CHECK(fine.result().ok());
  fs.bytes(data)[3] ^= std::byte{1};
  opened_checkpoint<careless, faulty_files> damaged({}, fs, named);
  CHECK(contains(damaged.result().problem, "its file \"m-3.data-00000-of-00001\" has the checksum "));
  fs.remove(data);
  opened_checkpoint<careless, faulty_files> missing({}, fs, named);
  CHECK(contains(missing.result().problem, "cannot open \"d/m-3.data-00000-of-00001\": No such file or directory"));
}

TEST_CASE("opened_checkpoint: a missing file, a strange file, no manifest") {
  auto fs = written();
  fs.remove(data);
  auto r = open(fs);
  CHECK(contains(r.problem, "cannot open \"d/m-3.data-00000-of-00001\": No such file or directory"));
  fs = written();
  auto m = manifest_of(plain::name, {}, plain{}.encode({0, {}, {{"w", uint8, {0}, {}, false}}}));
  m.files.erase(m.files.begin());
  replace(fs, manifest, to_text(m));
  CHECK(contains(open(fs).problem, "m-3."));
  fs = written();
  fs.remove(manifest);
  r = open(fs);
  CHECK(r.ok());
  CHECK(r.warning == "it has no manifest (\"m-3.plain.manifest\"), so its bytes could not be checked");
  replace(fs, named, "v");
  CHECK(open(fs).problem == "it stumbled over the name");
  r = open(fs, "d/none.plain");
  CHECK(r.kind == status::not_found);
}

TEST_CASE("opened_checkpoint: another codec, another name, a newer manifest") {
  auto fs = written();
  auto r = open(fs, "d/m-3.safetensors");
  CHECK(r.kind == status::invalid_argument);
  CHECK(r.problem ==
        "a checkpoint of the codec \"plain\" has a name that ends in \".plain\"; name the codec that wrote it");
  checkpoint_manifest m;
  status kind{};
  REQUIRE(parse_manifest(text_of(fs, manifest), m, kind).empty());
  m.codec = "other";
  replace(fs, manifest, to_text(m));
  r = open(fs);
  CHECK(r.kind == status::failed_precondition);
  CHECK(r.problem ==
        "it was written by the codec \"other\", and is read here by \"plain\"; name the codec that wrote it");
  m.codec = plain::name, m.version = 2;
  replace(fs, manifest, to_text(m));
  r = open(fs);
  CHECK(r.kind == status::failed_precondition);
  CHECK(contains(r.problem, "it has version 2, which is newer than version 1"));
}

TEST_CASE("opened_checkpoint: no more than max_bytes are taken in, over all files") {
  const auto fs = written();
  CHECK(open(fs, named, 11).ok());
  const auto r = open(fs, named, 10);
  CHECK(r.kind == status::resource_exhausted);
  CHECK(contains(r.problem, "cannot read \"d/m-3.data-00000-of-00001\": File too large"));
}

TEST_CASE("opened_checkpoint: what fails while reading is told; the manifest too") {
  for (std::int64_t at = 0;; ++at) {
    const auto fs = written();
    fs.count_from_zero();
    fs.plan({.at = at, .error = EIO});
    const auto r = open(fs);
    if (!r.ok()) CHECK(contains(r.problem, std::strerror(EIO)));
    if (at < fs.operations()) continue;
    CHECK(r.ok());
    break;
  }
}

TEST_CASE("opened_checkpoint: a codec that checks itself needs no manifest") {
  const faulty_files fs;
  snapshot s;
  s.step = 4;
  s.records = {{"w", uint8, {10}, std::as_bytes(std::span(bytes)), false}};
  publish(fs, "m-4.ckpt", byte_pieces(flat_binary{}.encode(s).files.at(0).pieces));
  const opened_checkpoint<flat_binary, faulty_files> c({}, fs, "m-4.ckpt");
  REQUIRE(c.result().ok());
  CHECK(c.result().warning.empty());
  CHECK(c.result().content.step == 4);
}
