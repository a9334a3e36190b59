// The commands that write.
#include <gradus/checkpoint/delta.hpp>
#include <gradus/checkpoint/open.hpp>

#include "commands.hpp"
#include "output.hpp"

namespace tool {

namespace {
int done(const settings& s, const std::vector<std::string>& files, const gradus::snapshot& content) {
  if (s.json) {
    json_out j;
    j.open('{').put("step", content.step).put("tensors", content.records.size()).key("files").open('[');
    for (const auto& f : files) j.put(f);
    std::puts(j.close().close().str().c_str());
  } else {
    for (const auto& f : files) std::printf("wrote %s\n", visible(f).c_str());
  }
  return 0;
}
}  // namespace

int convert(const settings& s, const std::string& from, destination to) {
  const auto found = gradus::detect_checkpoint(from, gradus::posix{});
  if (to.path.ends_with('/') || is_directory(to.path)) {  // under the name that it has
    const auto* known = gradus::detail::find_known_codec(found.codec);
    const auto name = std::string(gradus::file_name_of(found.path));
    to.path = gradus::join_path(
        to.path, known != nullptr ? gradus::detail::stem_of(name, known->extension).value_or(name) : name);
    if (to.codec.empty())
      gradus::raise(gradus::status::invalid_argument, "a directory says no format: give --to CODEC");
  }
  const bool reads = found.codec == "tensor_bundle", writes = codec_of(to) == "tensor_bundle";
  if (s.names && reads == writes)
    gradus::raise(gradus::status::invalid_argument,
                  reads ? "--names maps between TensorFlow's names and ours, but both sides are a tensor_bundle; "
                          "convert to flat_binary first"
                        : "--names maps between TensorFlow's names and ours, but neither side is a tensor_bundle; "
                          "leave it out");
  const auto c = open(from, reads ? s.names : naming{});
  if (writes) to.names = s.names;
  if (!c.warning.empty()) std::fprintf(stderr, "gradus-checkpoint: warning: %s\n", visible(c.warning, true).c_str());
  return done(s, write(c.content, to), c.content);
}

int compact(const settings& s, const std::vector<std::string>& chain, const destination& to) {
  std::vector<opened> files;
  for (const auto& path : chain) files.push_back(open(path));
  std::vector<gradus::named_snapshot> snapshots;
  for (const auto& f : files) snapshots.push_back({f.what.path, &f.content});
  const auto whole = gradus::compact(snapshots.front(), std::span(snapshots).subspan(1));
  return done(s, write(whole.content, to), whole.content);
}

}  // namespace tool
