#include "gradus/checkpoint/detect.hpp"

#include <doctest/doctest.h>

#include "gradus/checkpoint/flat.hpp"
#include "gradus/checkpoint/in_place.hpp"
#include "gradus/testing/temp_dir.hpp"
#include "saving.hpp"

using namespace gradus;
using saving::message, saving::contains;

namespace {

// In the place of the real codecs, which come with libraries: what is tested is who is called.
struct stand_in {
  using policy_for = kind::codec;
  static constexpr std::string_view extension = ".txt", proof = extension;
  static constexpr bool checks_itself = false;
  encoded encode(const snapshot&) const { return {{}, {{".txt", {}}}}; }
  decoded decode(checkpoint_files&) const { return {}; }
};
template <char Which>
struct stands_for : stand_in {
  static constexpr std::string_view name = Which == 's'   ? "safetensors"
                                           : Which == 'n' ? "npz"
                                           : Which == 't' ? "tensor_bundle"
                                                          : "cereal_json";
};

struct folder {
  testing::temp_dir dir;
  posix fs;
  std::string put(const std::string& name, std::string_view bytes) const {
    const auto path = join_path(dir.path(), name);
    publish(fs, path, bytes);
    return path;
  }
  std::string path(std::string_view name) const { return join_path(dir.path(), name); }
  // "codec path", the directory's name left out.
  std::string found(std::string_view name) const {
    const auto path = join_path(dir.path(), name);
    return with_codec<flat_binary, stands_for<'s'>, stands_for<'n'>, stands_for<'t'>, stands_for<'c'>>(
        path, fs, [&](auto codec, const std::string& at) {
          std::string each;
          if constexpr (requires { codec.each; }) each = text("<", std::string_view(decltype(codec.each)::name), ">");
          return text(std::string_view(codec.name), each, ' ', file_name_of(at));
        });
  }
};

constexpr std::string_view some_json("\x02\0\0\0\0\0\0\0{}", 10), some_zip("PK\3\4rest", 8);

}  // namespace

TEST_CASE("a checkpoint is found by its file, its name without extension, its directory") {
  const folder f;
  saving::model m;
  m.at(5);
  saver<flat_binary> s;
  s.save(m.list, f.path("model"), 5);
  for (const auto name : {"model-5.ckpt", "model-5", ""}) CHECK(f.found(name) == "flat_binary model-5.ckpt");

  f.put("w.safetensors", some_json);
  f.put("v.npz", some_zip);
  CHECK(f.found("w.safetensors") == "safetensors w.safetensors");
  CHECK(f.found("w") == "safetensors w.safetensors");
  CHECK(f.found("v") == "npz v.npz");
}

TEST_CASE("a TensorFlow checkpoint is found by its prefix and by each of its files") {
  const folder f;
  for (const auto name : {"model.ckpt-7.index", "model.ckpt-7.data-00000-of-00001", "model.ckpt-7.meta"})
    f.put(name, "x");
  for (const auto name :
       {"model.ckpt-7", "model.ckpt-7.index", "model.ckpt-7.data-00000-of-00001", "model.ckpt-7.meta"})
    CHECK(f.found(name) == "tensor_bundle model.ckpt-7");
  f.put("checkpoint", "model_checkpoint_path: \"model.ckpt-7\"\n");
  CHECK(f.found("") == "tensor_bundle model.ckpt-7");
}

TEST_CASE("our frame names its codec; damage goes to a codec that can tell what it is") {
  const folder f;
  std::string head("GRADUSCK\1\0\0\0\4\3\2\1cereal_json\0\0\0\0\0", 32);
  head.resize(60, '\0');
  const auto crc = crc32c(head);
  head.append(reinterpret_cast<const char*>(&crc), 4);
  f.put("a.ckpt", head);
  CHECK(f.found("a.ckpt") == "cereal_json a.ckpt");
  head[20] ^= 1;  // in the name
  f.put("a.ckpt", head);
  CHECK(f.found("a.ckpt") == "flat_binary a.ckpt");
  head[0] ^= 1;
  f.put("a.ckpt", head);
  CHECK(f.found("a.ckpt") == "flat_binary a.ckpt");
  f.put("a.ckpt", "");
  CHECK(f.found("a.ckpt") == "flat_binary a.ckpt");
  f.put("b.safetensors", "rubbish");
  CHECK(f.found("b.safetensors") == "safetensors b.safetensors");
}

TEST_CASE("shards are found by the file that counts them, and by the manifest") {
  const folder f;
  saving::model m;
  saver<sharded<flat_binary>> s;
  s.save(m.list, f.path("model"), 5);
  for (const auto name : {"model-5.shards", "model-5", "model-5.shards.manifest", ""})
    CHECK(f.found(name) == "sharded<flat_binary> model-5.shards");
  CHECK(f.found("model-5-00001-of-00002.ckpt") == "flat_binary model-5-00001-of-00002.ckpt");  // whole by itself
  f.put("w.shards", "gradus shards 4 of safetensors\n");
  CHECK(f.found("w") == "sharded<safetensors> w.shards");
  f.put("w.shards", "gradus shafts 4");
  CHECK(f.found("w") == "sharded<flat_binary> w.shards");
}

TEST_CASE("where several have one name, the question is asked back") {
  const folder f;
  f.put("w.safetensors", some_json);
  f.put("w.npz", some_zip);
  auto why = message([&] { f.found("w"); }, status::failed_precondition);
  CHECK(contains(why, "w.safetensors\", \""));
  CHECK(contains(why, "w.npz\"; name one with its extension"));
  f.put("w.npz.manifest", to_text(checkpoint_manifest{1, "npz", "x", "", {{".npz", 8, 0}}}));
  CHECK(f.found("w.npz.manifest") == "npz w.npz");
}

TEST_CASE("what is no checkpoint is refused by name") {
  const folder f;
  CHECK(contains(message([&] { f.found("nothing"); }, status::not_found), "there is no checkpoint \""));
  CHECK(contains(message([&] { f.found(""); }, status::not_found), "has no state file"));
  f.put("checkpoint", "model_checkpoint_path: \"model-9.ckpt\"\n");
  CHECK(contains(message([&] { f.found(""); }, status::not_found), "model-9.ckpt"));
  f.put("a.txt", "hello world");
  const auto why = message([&] { f.found("a.txt"); }, status::failed_precondition);
  CHECK(contains(why, "no checkpoint of a known format: 11 bytes, the first of them 68 65 6c 6c 6f 20 77 6f;"));
  f.put("model.pt", some_zip);
  CHECK(contains(message([&] { f.found("model.pt"); }, status::failed_precondition), "PyTorch's .pt"));
  f.put("model.bin", some_json);
  CHECK(contains(message([&] { f.found("model.bin"); }, status::failed_precondition), "ends in \".safetensors\""));
  f.put("w.npz", some_zip);
  const auto unasked = message([&] { with_codec<flat_binary>(f.path("w.npz"), posix{}, [](auto, const auto&) {}); },
                               status::failed_precondition);
  CHECK(contains(unasked, "written by the codec \"npz\", which is not among those asked for (flat_binary)"));
}
