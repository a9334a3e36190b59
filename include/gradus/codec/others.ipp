// The bodies of others.hpp.
#pragma once
#include "../base/body.hpp"
#include "others.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::string_view first_member_of_zip(std::string_view begin) {
  constexpr std::size_t head = 30;
  if (!begin.starts_with("PK\3\4") || begin.size() < head) return {};
  const auto length = static_cast<std::size_t>(static_cast<unsigned char>(begin[26])) |
                      static_cast<std::size_t>(static_cast<unsigned char>(begin[27])) << 8;
  return begin.substr(head, length);
}

GRADUS_BODY bool looks_like_onnx(std::string_view begin) {
  if (begin.size() < 5 || begin[0] != '\x08' || begin[1] < 3 || begin[1] > 20 || begin[2] != '\x12') return false;
  const auto length = static_cast<unsigned char>(begin[3]);
  if (length == 0 || length > 40) return false;
  for (const char c : begin.substr(4, length))
    if (c < ' ' || c > '~') return false;
  return true;
}

GRADUS_BODY bool is_v1_shard(std::string_view name) {
  constexpr std::size_t all = 15;  // -00000-of-00002
  if (name.size() <= all || name.substr(0, name.size() - all).ends_with(".data")) return false;
  const auto end = name.substr(name.size() - all);
  const auto digits = [](std::string_view s) { return s.find_first_not_of("0123456789") == s.npos; };
  return end[0] == '-' && end.substr(6, 4) == "-of-" && digits(end.substr(10)) &&
         (digits(end.substr(1, 5)) || end.substr(1, 5) == "?????");
}

GRADUS_BODY std::string advice_for(std::string_view path, std::string_view begin, std::string_view end) {
  const auto named = [path](auto... extension) { return (path.ends_with(extension) || ...); };
  constexpr std::string_view torch =
      "; convert it in Python: safetensors.torch.save_file(torch.load(FILE, map_location=\"cpu\"), "
      "\"model.safetensors\"), or with .state_dict() of what was loaded if that is a model";
  const bool zip = begin.starts_with("PK\3\4");
  const auto member = first_member_of_zip(begin);
  if (zip && (member.ends_with("data.pkl") || member.find("/data.pkl") != member.npos || named(".pt", ".pth", ".ckpt")))
    return text("PyTorch's (a ZIP archive of pickled objects)", torch);
  const bool pickled = begin.size() > 1 && begin[0] == '\x80' && begin[1] >= 2 && begin[1] <= 5;
  if (pickled || (!zip && named(".pt", ".pth")))
    return text("pickled Python objects, as PyTorch wrote them before 1.6", torch);
  if ((zip && (member == "metadata.json" || member == "config.json")) || named(".keras"))
    return "a Keras archive; in Python, save it with model.export(FOLDER) and open FOLDER, or its weights with "
           "safetensors";
  if (begin.starts_with("\x89HDF\r\n\x1a\n") || named(".h5", ".hdf5"))
    return "HDF5; with Keras, load it in Python and save a TensorFlow checkpoint (tf.train.Checkpoint(model=model)"
           ".write(PREFIX)) or numpy.savez(\"model.npz\", **{w.name: w.numpy() for w in model.weights})";
  if (begin.starts_with("GGUF"))
    return "GGUF; in Python, safetensors.numpy.save_file({t.name: t.data for t in gguf.GGUFReader(FILE).tensors}, "
           "\"model.safetensors\") keeps the tensors";
  if (named(".onnx") || looks_like_onnx(begin))
    return "ONNX, a graph with its weights; in Python, safetensors.numpy.save_file({t.name: "
           "onnx.numpy_helper.to_array(t) for t in onnx.load(FILE).graph.initializer}, \"model.safetensors\") keeps "
           "the weights";
  if (named(".safetensors.index.json"))
    return "the list of a model that is in several safetensors files; open each file that its \"weight_map\" names, or "
           "join them in Python: merge the dicts of safetensors.torch.load_file(FILE) and save_file() the result";
  if (named(".bin.index.json")) return text("the list of a PyTorch model that is in several files", torch);
  if (named("saved_model.pb", "saved_model.pbtxt"))
    return "the graph of a SavedModel; open the folder that it is in, whose variables are the checkpoint "
           "\"variables/variables\"";
  if (end.ends_with("\x57\xfb\x80\x8b\x24\x75\x47\xdb") || is_v1_shard(path))
    return std::string(first_tensorflow_format);
  return {};
}

}  // namespace gradus::detail
