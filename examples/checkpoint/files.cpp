#include "files.hpp"

#include <cstdio>
#include <cstdlib>
#include <gradus/base/sort.hpp>
#include <gradus/checkpoint/folder.hpp>
#include <gradus/codec/all_codecs.hpp>
#include <gradus/codec/manifest.hpp>
#include <gradus/codec/open.hpp>
#include <set>

#include "limits.hpp"
#include "output.hpp"

namespace tool {

namespace {
using namespace gradus;

template <class Visitor>
decltype(auto) with_any(const detected_checkpoint& what, Visitor&& visit) {
  return all_codecs::with(what, visit);
}

template <codec Codec>
void open_as(const Codec& c, opened& out) {
  auto held = std::make_shared<opened_checkpoint<Codec, posix>>(c, posix{}, out.what.path, UINT64_MAX, 1, limits);
  auto& r = held->result();
  out.content = std::move(r.content), out.problem = std::move(r.problem), out.warning = std::move(r.warning);
  out.kind = r.kind, out.lost = std::move(r.lost), out.files = held->files();
  out.keep = std::move(held);
}

std::string stem_at(const std::string& path, std::string_view extension) {
  for (const std::string_view end : {extension, std::string_view(".index"), std::string_view(".shards")})
    if (auto stem = detail::stem_of(path, end); !end.empty() && stem) return *stem;
  return path;
}

template <codec Codec>
std::vector<std::string> write_encoded(const encoded& checkpoint, const metadata& about, const destination& to,
                                       std::string_view extension) {
  const std::string stem = stem_at(to.path, extension);
  std::vector<file_content> files;
  for (const auto& f : checkpoint.files) files.push_back({stem + f.suffix, f.pieces});
  const std::string manifest =
      Codec::checks_itself ? std::string() : to_text(manifest_of(Codec::name, about, checkpoint));
  const auto bytes = std::as_bytes(std::span(manifest.data(), manifest.size()));
  if (!manifest.empty()) files.push_back({stem + manifest_suffix_of(Codec::extension), byte_pieces(&bytes, 1)});
  std::vector<std::string> paths;
  for (const auto& f : files) {
    if (!to.overwrite && posix{}.exists(f.path) == 0)
      raise(status::already_exists, text("\"", f.path, "\" exists; name another file or directory, or use --force"));
    paths.push_back(f.path);
  }
  make_directories(posix{}, directory_of(to.path));
  if (const auto p = try_publish(posix{}, std::span<const file_content>(files))) raise(p);
  return paths;
}

template <codec Codec>
std::vector<std::string> write_as(const Codec& c, snapshot content, const destination& to, std::string_view extension) {
  metadata about = content.about;
  about["library"] = written_by;
  about["codec"] = Codec::name;
  // A bundle of TensorFlow's has no metadata, and needs none: they would be one more tensor.
  const bool has_none = std::all_of(content.about.begin(), content.about.end(), [](const auto& pair) {
    return pair.first.starts_with(detail::bundle_notes::strings_key);
  });
  if (!std::same_as<Codec, tensor_bundle> || !has_none) content.about = about;
  return write_encoded<Codec>(c.encode(content), about, to, extension);
}

template <codec Codec>
std::vector<std::string> write_shards_of(const Codec& c, snapshot content, const destination& to) {
  if (to.shards == 0) return write_as(c, std::move(content), to, Codec::extension);
  const sharded<Codec> many{static_cast<std::uint32_t>(to.shards), c};
  return write_as(many, std::move(content), to, Codec::extension);
}

// An image has no metadata, and no step but that of a tensor. Who wrote a checkpoint is no loss; the rest is.
void refuse_losses_in_image(const snapshot& content) {
  std::string lost;
  for (const auto& [key, value] : content.about)
    if (!is_of_writer(key)) lost += text('"', key, "\", ");
  if (content.step != step_of_tensors(content)) lost += text("\"step\" (", content.step, "), ");
  if (lost.empty()) return;
  lost.resize(lost.size() - 2);
  raise(status::failed_precondition,
        text(lost,
             " would be lost: a flash image has no metadata, and no step but that of a tensor \"global_step\". "
             "Nothing was written; name with convert --drop what may be left out"));
}
std::string write_image(const snapshot& content, const destination& to) {
  const std::string path = stem_at(to.path, flash_extension) + std::string(flash_extension);
  if (!to.overwrite && posix{}.exists(path) == 0)
    raise(status::already_exists, text("\"", path, "\" exists; name another file or directory, or use --force"));
  const flash_geometry otherwise;
  const auto image = write_flash_image(
      content, {to.sector_bytes.value_or(otherwise.sector_bytes), to.sectors.value_or(otherwise.sectors)});
  refuse_losses_in_image(content);
  make_directories(posix{}, directory_of(path));
  const std::span<const std::byte> bytes(image);
  publish(posix{}, path, byte_pieces(&bytes, 1));
  return path;
}
}  // namespace

std::int64_t step_of_tensors(const snapshot& content) {
  std::int64_t step = 0;
  for (const auto& r : content.records)
    if (r.name == "global_step" && r.type == int64 && r.dims.rank == 0 && !r.blob && r.bytes.size() == sizeof step)
      std::memcpy(&step, r.bytes.data(), sizeof step);
  return step;
}

void check_names(const snapshot& content, const tensorflow_names& names, bool theirs) {
  const std::string& optimizer = theirs && !names.called.empty() ? names.called : names.optimizer;
  std::map<std::string_view, const record*> all;
  for (const auto& r : content.records) all.emplace(r.name, &r);
  std::set<std::string> others;
  std::string example;
  for (const auto& r : content.records) {
    const auto slash = r.name.rfind('/');
    if (slash == std::string::npos) continue;
    if (!detail::slot_parts(r.name, optimizer).first.empty()) return;
    // "w/Adam_1" beside a "w" of its type and extents.
    const auto variable = all.find(std::string_view(r.name).substr(0, slash));
    if (variable == all.end() || variable->second->type != r.type || variable->second->dims != r.dims) continue;
    std::string slot = r.name.substr(slash + 1);
    const auto digits = slot.find_last_not_of("0123456789");
    if (digits != slot.npos && digits + 1 < slot.size() && slot[digits] == '_') slot.resize(digits);
    if (slot == "ExponentialMovingAverage" || slot.empty()) continue;
    if (others.insert(slot).second && example.empty()) example = r.name;
  }
  if (others.empty()) return;
  std::string said;
  for (const auto& o : others) said += text(said.empty() ? "" : ", ", o);
  throw usage_error(text("--names says ", optimizer, ", but no slot is called so; there are slots of ", said, " (\"",
                         example, "\"); give --names tensorflow:", *others.begin(), ", or tensorflow:", names.optimizer,
                         ",called=", *others.begin(), " if that is what TensorFlow's optimizer was called"));
}

detected_checkpoint detect(const std::string& path) {
  if (path.ends_with(flash_extension) && !is_directory(path) && posix{}.exists(path) == 0)
    return {std::string(flash_image), {}, path};
  return detect_checkpoint(path, posix{});
}

opened try_open(const std::string& path, const naming& names) {
  opened out;
  out.what = detect(path);
  if (names && out.what.codec != tensor_bundle::name)
    throw usage_error(
        text("--names maps names of a tensor_bundle, but \"", path, "\" is ", out.what.codec, "; leave it out"));
  const auto warn = [&out](const std::string& what) {
    if (!what.empty()) out.warning += text(out.warning.empty() ? "" : "; ", what);
  };
  if (out.what.codec == flash_image) {
    // Before the bytes take memory: no image is so large, whatever the limits allow.
    if (const auto bytes = detail::head_of(posix{}, path, 0).size; bytes > INT32_MAX) {
      out.kind = status::failed_precondition;
      out.problem = text("it has ", bytes, " bytes; the image of a flash has less than 2 GiB");
      return out;
    }
    auto held = std::make_shared<std::pair<std::vector<std::byte>, decoded>>();
    held->first = read_file(posix{}, path, limits), held->second = read_flash_image(held->first, limits);
    out.content = held->second.content, out.problem = held->second.problem, out.kind = held->second.kind;
    out.keep = std::move(held);
    return out;
  }
  with_any(out.what, [&](auto codec, const std::string&) {
    open_as(codec, out);
    if constexpr (std::same_as<decltype(codec), tensor_bundle>)
      if (names && out.problem.empty()) {
        check_names(out.content, *names, true);
        codec.names = names;
        open_as(codec, out);
      }
  });
  warn(out.what.warning);
  if (out.problem.empty() && is_directory(path)) warn(detail::wrong_step(out.what.path, out.content));
  return out;
}
opened open(const std::string& path, const naming& names) {
  auto out = try_open(path, names);
  if (!out.problem.empty()) raise(out.kind, text("\"", out.what.path, "\" cannot be read: ", out.problem));
  return out;
}

std::optional<std::vector<std::string>> write_again(const opened& bundle, const destination& to) {
  const auto files = static_cast<std::ptrdiff_t>(bundle.files.size());
  const auto shards = std::count_if(bundle.files.begin(), bundle.files.end(),
                                    [](const auto& f) { return f.first.starts_with(".data-"); });
  if (bundle.what.codec != tensor_bundle::name || codec_of(to) != tensor_bundle::name || to.names || files == 0 ||
      (to.shards != 0 && to.shards != shards))
    return {};
  encoded same;
  for (const bool is_index : {false, true})  // the index completes a bundle, so it comes last
    for (const auto& [suffix, bytes] : bundle.files)
      if ((suffix == ".index") == is_index) same.files.push_back({suffix, {bytes}});
  metadata about = bundle.content.about;
  about.emplace("library", written_by), about["codec"] = tensor_bundle::name;
  return write_encoded<tensor_bundle>(same, about, to, tensor_bundle::extension);
}

const std::vector<std::string>& codec_names() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names;
    all_codecs::for_each([&]<class C>(std::type_identity<C>) { names.emplace_back(C::name); });
    names.emplace_back(flash_image);
    return names;
  }();
  return all;
}

std::string codec_of(const destination& to) {
  if (!to.codec.empty()) return to.codec;
  if (to.path.ends_with(flash_extension)) return std::string(flash_image);
  for (const auto& k : detail::known_codecs)
    if (!k.proof.empty() && k.name != "sharded" && to.path.ends_with(k.proof)) return std::string(k.name);
  raise(status::invalid_argument,
        text("\"", to.path,
             "\" does not say in which format to write: give --to CODEC, or a name that ends in .ckpt, "
             ".safetensors, .npz, .index or .flash"));
}

void check_options(const destination& to) {
  const auto codec = codec_of(to);
  const bool is_image = codec == flash_image;
  if (to.names && codec != tensor_bundle::name)
    throw usage_error(text("--names maps names of a tensor_bundle, but ", codec,
                           " is written; leave it out, or give --to tensor_bundle"));
  if (is_image && to.shards != 0) throw usage_error("the image of a flash is one file; leave --shards out");
  if (!is_image && (to.sector_bytes || to.sectors))
    throw usage_error(text("--sector-bytes and --sectors are of the image of a flash, but ", codec,
                           " is written; leave them out, or give --to flash_image"));
}

std::vector<std::string> write(snapshot content, const destination& to) {
  const auto codec = codec_of(to);
  if (codec == tensor_bundle::name)
    return write_as(tensor_bundle{.shards = std::max(1, to.shards), .names = to.names}, std::move(content), to,
                    tensor_bundle::extension);
  if (codec == flash_image) return {write_image(content, to)};
  std::vector<std::string> written;
  all_codecs::for_each([&]<class C>(std::type_identity<C>) {
    if constexpr (!std::is_same_v<C, tensor_bundle>)
      if (codec == C::name) written = write_shards_of(C{}, std::move(content), to);
  });
  return written;
}

tensorflow_names names_of(std::string_view said) {
  constexpr std::string_view head = "tensorflow:";
  const auto refuse = [&] {
    raise(status::invalid_argument,
          text("--names is \"", said,
               "\"; expected tensorflow:RULE, the optimizer's name here, and what differs from its defaults: "
               "tensorflow:Adam,called=MyAdam,scope=training,global_step=step,beta1=0.9,beta2=0.999"));
  };
  if (!said.starts_with(head)) refuse();
  tensorflow_names out;
  bool first = true;
  for (auto rest = said.substr(head.size()); first || !rest.empty(); first = false) {
    const auto word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    const auto key = word.substr(0, word.find('='));
    const auto value = key.size() < word.size() ? word.substr(key.size() + 1) : std::string_view{};
    if (first && !key.empty() && key.size() == word.size())
      out.optimizer = key;
    else if (key == "called")
      out.called = value;
    else if (key == "scope")
      out.scope = value;
    else if (key == "global_step")
      out.global_step = value;
    else if (key == "beta1" || key == "beta2") {
      double& beta = key == "beta1" ? out.beta1 : out.beta2;
      char* end = nullptr;  // std::from_chars for double is not in every library
      const std::string digits(value);
      beta = std::strtod(digits.c_str(), &end);
      if (digits.empty() || end != digits.c_str() + digits.size()) refuse();
    } else
      refuse();
    if (!first && value.empty()) refuse();
  }
  return out;
}

bool is_directory(const std::string& path) {
  std::vector<std::string> names;
  return posix{}.list(path, names) == 0;
}

directory look_into(const std::string& path) {
  directory out;
  out.path = path;
  std::vector<std::string> names;
  if (const int e = detail::uninterrupted([&] { return posix{}.list(path, names); }); e != 0) raise({e, "list", path});
  std::sort(names.begin(), names.end());
  checkpoint_state state;
  try {
    if (auto found = read_state_file(posix{}, path)) state = std::move(*found), out.has_state = true;
  } catch (const error& e) {
    out.has_state = true, out.state_problem = e.what(), out.state_kind = e.kind();
  }

  std::set<std::string> paths;
  const auto has = [&](const std::string& name) { return std::binary_search(names.begin(), names.end(), name); };
  const auto add = [&](std::string name) {
    listed item;
    item.path = listed_path(posix{}, path, name, item.warning);
    try {
      const auto found = detect(item.path);
      item.codec = found.codec, item.each = found.each, item.path = found.path;
    } catch (const error& e) {
      item.problem = e.what(), item.kind = e.kind();
    }
    if (!paths.insert(item.path).second) return;
    item.step = checkpoint_step(name);
    out.checkpoints.push_back(std::move(item));
  };
  for (const auto& name : state.all) add(name);
  for (const auto& [name, metric] : state.best) add(name);
  auto proofs = detail::known_proofs();
  proofs.push_back(flash_extension);
  for (const auto& name : names)
    for (const std::string_view proof : proofs) {
      const auto stem = detail::stem_of(name, proof);
      if (!stem || is_directory(join_path(path, name))) continue;
      const bool shard = stem->size() > 15 && detail::is_checkpoint_suffix(stem->substr(stem->size() - 15), "") &&
                         has(stem->substr(0, stem->size() - 15) + ".shards");
      if (!shard) add(proof == ".index" ? *stem : name);
    }

  std::set<std::string> owned;
  for (auto& item : out.checkpoints) {
    const auto name = std::string(file_name_of(item.path));
    const auto* known = detail::find_known_codec(item.codec);
    const std::string extension(known != nullptr ? known->extension : "");
    const auto stem = stem_at(name, extension);
    const auto is_of_it = [&](const std::string& file) {
      if (known == nullptr && file == name) return true;  // a flash image, or a file of another program
      return file.starts_with(stem) && !is_temporary(file) &&
             detail::is_checkpoint_suffix(std::string_view(file).substr(stem.size()), extension);
    };
    for (const auto& file : names)
      if (is_of_it(file)) {
        item.files.push_back(file);
        item.bytes += detail::head_of(posix{}, join_path(path, file), 0).size;
        owned.insert(file);
      }
    std::string moved;
    const auto is = [&](const std::string& said) {
      return said == name || listed_path(posix{}, path, said, moved) == item.path;
    };
    item.newest = is(state.newest);
    for (std::size_t i = 0; i < state.all.size(); ++i)
      if (is(state.all[i])) {
        item.kept = true;
        if (i < state.timestamps.size()) item.saved_at = state.timestamps[i];
      }
    for (const auto& [said, metric] : state.best)
      if (is(said)) item.kept = true, item.metric = metric;
    for (const auto& said : state.superseded) item.superseded = item.superseded || (is(said) && !item.kept);
  }
  gradus::detail::sort_stably(
      out.checkpoints, [](const listed& a, const listed& b) { return a.step.value_or(-1) < b.step.value_or(-1); });
  for (const auto& file : names)
    if (is_temporary(file) || (!owned.contains(file) && (file.ends_with(manifest_suffix) || detail::bundle_stem(file))))
      out.leftovers.push_back(file);
  return out;
}

}  // namespace tool
