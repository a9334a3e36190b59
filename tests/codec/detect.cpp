#include "gradus/codec/detect.hpp"
#include "gradus/store/crc32c.hpp"

#include <doctest/doctest.h>

#include "../checkpoint/saving.hpp"
#include "gradus/checkpoint/in_place.hpp"
#include "gradus/codec/flat.hpp"
#include "gradus/testing/temp_dir.hpp"

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
  f.put("model.zip", some_zip);
  CHECK(contains(message([&] { f.found("model.zip"); }, status::failed_precondition), "ends in \".npz\""));
  f.put("model.bin", some_json);
  CHECK(contains(message([&] { f.found("model.bin"); }, status::failed_precondition), "ends in \".safetensors\""));
  f.put("w.npz", some_zip);
  const auto unasked = message([&] { with_codec<flat_binary>(f.path("w.npz"), posix{}, [](auto, const auto&) {}); },
                               status::failed_precondition);
  CHECK(contains(unasked, "written by the codec \"npz\", which is not among those asked for (flat_binary)"));
}

// Whatever it is called: by its first bytes, or its last, or its name.
TEST_CASE("files of other programs are refused with what to do") {
  const folder f;
  const auto zip_of = [](std::string_view member) {
    std::string out("PK\3\4", 4);
    out.resize(30, '\0');
    out[26] = static_cast<char>(member.size());
    return out + std::string(member) + "content";
  };
  const std::string onnx = std::string("\x08\x08\x12\x07pytorch:", 12), hdf5 = "\x89HDF\r\n\x1a\n more of it",
                    gguf("GGUF\3\0\0\0more of it", 17), pickle = std::string("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9", 9),
                    table = std::string(60, 'x') + "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
  const struct {
    std::string name, content, says;
  } cases[] = {
      {"m.pt", zip_of("archive/data.pkl"), "torch.load("},
      {"m.pth", zip_of("m/data.pkl"), "torch.load("},
      {"epoch=1.ckpt", zip_of("epoch=1/data.pkl"), "torch.load("},
      {"renamed.npz", zip_of("archive/data.pkl"), "torch.load("},
      {"m.bin", zip_of("archive/data.pkl"), "torch.load("},
      {"old.pt", pickle, "torch.load("},
      {"old.bin", pickle, "torch.load("},
      {"m.onnx", onnx, "onnx.load("},
      {"m.bin2", onnx, "onnx.load("},
      {"m.gguf", gguf, "gguf.GGUFReader("},
      {"m.bin3", gguf, "gguf.GGUFReader("},
      {"m.h5", hdf5, "tf.train.Checkpoint(model=model)"},
      {"m.hdf5", hdf5, "tf.train.Checkpoint(model=model)"},
      {"m.bin4", hdf5, "tf.train.Checkpoint(model=model)"},
      {"m.keras", zip_of("metadata.json"), "model.export("},
      {"model.ckpt", table, "write_version=tf.train.SaverDef.V2"},
      {"model-7", table, "write_version=tf.train.SaverDef.V2"},
      {"model.ckpt-7-00000-of-00002", table, "write_version=tf.train.SaverDef.V2"},
      {"model.safetensors.index.json", R"({"weight_map": {"w": "a.safetensors"}})", "safetensors.torch.load_file("},
      {"pytorch_model.bin.index.json", R"({"weight_map": {"w": "a.bin"}})", "torch.load("},
      {"saved_model.pb", "\x08\x01\x12", "variables/variables"},
  };
  for (const auto& c : cases) {
    f.put(c.name, c.content);
    const auto why = message([&] { f.found(c.name); }, status::failed_precondition);
    CHECK_MESSAGE(contains(why, c.says), why);
    CHECK_MESSAGE(contains(why, "\"" + f.path(c.name) + "\" is "), why);
    CHECK(!contains(why, "name that ends in"));
  }
  for (const char* prefix : {"model.ckpt-7", "model.ckpt-7-?\?\?\?\?-of-00002"})  // the first format, in shards
    CHECK(contains(message([&] { f.found(prefix); }, status::failed_precondition), "SaverDef.V2"));
  // What begins with a number that looks like theirs is safetensors all the same.
  f.put("short.safetensors", std::string("\x80\2\0\0\0\0\0\0{", 9) + std::string(0x280, ' '));
  CHECK(f.found("short.safetensors") == "safetensors short.safetensors");
  f.put("short.pt", std::string("\x80\2\0\0\0\0\0\0{", 9) + std::string(0x280, ' '));
  CHECK(contains(message([&] { f.found("short.pt"); }, status::failed_precondition), "ends in \".safetensors\""));
}

TEST_CASE("of a SavedModel the variables are meant") {
  const folder f;
  for (const char* name : {"m", "m/variables", "empty"}) REQUIRE(posix{}.make_directory(f.path(name)) == 0);
  f.put("m/saved_model.pb", "x"), f.put("empty/saved_model.pb", "x");
  for (const char* name : {"m/variables/variables.index", "m/variables/variables.data-00000-of-00001"})
    f.put(name, "x");
  CHECK(f.found("m") == "tensor_bundle variables");
  CHECK(detect_checkpoint(f.path("m"), posix{}).path == f.path("m/variables/variables"));
  CHECK(detect_checkpoint(f.path("m/variables"), posix{}).path == f.path("m/variables/variables"));
  CHECK(contains(message([&] { f.found("empty"); }, status::not_found), "has no variables"));
}

TEST_CASE("a state file with the paths of another machine: the checkpoint of that name beside it, with a warning") {
  for (const char* said :
       {"/home/else/runs/model-5", "C:\\Users\\else\\model-5", "\\\\server\\runs\\model-5", "D:/runs/model-5"})
    for (const char* extension : {".ckpt", ""}) {  // ours, and a bundle's prefix
      CAPTURE(said);
      const folder f;
      const bool bundle = *extension == '\0';
      const std::string name = std::string("model-5") + extension;
      saving::model m;
      m.at(5);
      saver<flat_binary> s;
      if (bundle)
        f.put("model-5.index", "x");
      else
        s.save(m.list, f.path("model"), 5);
      std::string escaped;
      for (const char c : std::string(said) + extension) escaped += c == '\\' ? "\\\\" : std::string(1, c);
      posix{}.remove(f.path("checkpoint"));
      f.put("checkpoint",
            "model_checkpoint_path: \"" + escaped + "\"\nall_model_checkpoint_paths: \"" + escaped + "\"\n");
      const auto found = detect_checkpoint(f.dir.path(), posix{});
      CHECK(found.path == f.path(name));
      CHECK_MESSAGE(contains(found.warning, "which is not there; \"" + f.path(name) + "\" beside it is taken"),
                    found.warning);
      if (!bundle) {
        saving::model other;
        const auto back = s.restore_latest(other.list, f.dir.path());
        REQUIRE(back);
        CHECK(back->step == 5);
        CHECK(back->path == f.path(name));
        CHECK_MESSAGE(contains(back->warning, "which is not there"), back->warning);
      }
      // Relative names mean this folder, and nothing else is looked for.
      posix{}.remove(f.path("checkpoint"));
      f.put("checkpoint", "model_checkpoint_path: \"sub/" + name + "\"\n");
      CHECK(contains(message([&] { detect_checkpoint(f.dir.path(), posix{}); }, status::not_found), "sub/model-5"));
    }
}
