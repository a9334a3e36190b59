// The commands that write.
#include <gradus/checkpoint/delta.hpp>
#include <gradus/codec/open.hpp>

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

// Does this name fit "w*" or "*/Adam_?"?
bool fits(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = std::string_view::npos, from = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++, from = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1, n = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// Takes out what is to be dropped: tensors, metadata, entries that are no tensors, and of what becomes an image also a
// step that only the checkpoint's head says. Returns whether there was anything. Raises for what would be lost
// otherwise, and for a pattern that nothing fits.
bool drop(opened& c, const std::vector<std::string>& patterns, bool to_image = false) {
  std::vector<bool> used(patterns.size());
  const auto is_named = [&](const std::string& name) {
    bool any = false;
    for (std::size_t i = 0; i < patterns.size(); ++i)
      if (fits(patterns[i], name)) any = used[i] = true;
    return any;
  };
  std::erase_if(c.lost, is_named);
  std::erase_if(c.content.records, [&](const auto& r) {
    const bool gone = is_named(r.name);  // and what is said about it: a string tensor's extents
    if (gone) c.content.about.erase(std::string(gradus::detail::bundle_notes::strings_key) + r.name);
    return gone;
  });
  std::erase_if(c.content.about, [&](const auto& pair) { return !is_of_writer(pair.first) && is_named(pair.first); });
  if (const auto step = step_of_tensors(c.content); to_image && c.content.step != step && is_named("step"))
    c.content.step = step;
  for (std::size_t i = 0; i < patterns.size(); ++i)
    if (!used[i])
      gradus::raise(gradus::status::not_found, gradus::text("--drop \"", patterns[i], "\" fits nothing in \"",
                                                            c.what.path, "\"; `show` lists the names"));
  if (!c.lost.empty()) {
    std::string names;
    for (const auto& name : c.lost) names += gradus::text(names.empty() ? "\"" : ", \"", name, '"');
    gradus::raise(gradus::status::failed_precondition,
                  gradus::text(names, " would be lost: ", c.warning,
                               ". Nothing was written; name with --drop what may ", "be left out"));
  }
  return !patterns.empty();
}

// A delta is converted as it is or not at all: it has rows instead of tensors, and a checksum of all that it has.
void refuse_for_delta(const settings& s, const opened& c, const destination& to,
                      const std::vector<std::string>& dropped) {
  const char* const what = !dropped.empty()              ? "--drop would take something out of it"
                           : s.names                     ? "--names would give its tensors other names"
                           : codec_of(to) == flash_image ? "a board's flash has a place only for whole tensors"
                                                         : nullptr;
  if (what != nullptr)
    gradus::raise(gradus::status::failed_precondition,
                  gradus::text("\"", c.what.path, "\" is a delta, and ", what,
                               "; compact it with its base first (gradus-checkpoint compact BASE DELTA... -o TO), then "
                               "convert the result"));
}
}  // namespace

int convert(const settings& s, const std::string& from, destination to, const std::vector<std::string>& dropped) {
  const auto found = detect(from);
  if (to.path.ends_with('/') || is_directory(to.path)) {  // under the name that it has
    const auto* known = gradus::detail::find_known_codec(found.codec);
    const auto name = std::string(gradus::file_name_of(found.path));
    to.path = gradus::join_path(
        to.path, gradus::detail::stem_of(name, known != nullptr ? known->extension : flash_extension).value_or(name));
    if (to.codec.empty()) throw usage_error("a directory says no format: give --to CODEC");
  }
  const bool reads = found.codec == "tensor_bundle", writes = codec_of(to) == "tensor_bundle";
  if (s.names && reads == writes)
    throw usage_error(reads ? "--names maps between TensorFlow's names and ours, but both sides are a tensor_bundle; "
                              "convert to flat_binary first"
                            : "--names maps between TensorFlow's names and ours, but neither side is a tensor_bundle; "
                              "leave it out");
  if (writes) to.names = s.names;
  check_options(to);
  auto c = open(from, reads ? s.names : naming{});
  if (gradus::is_delta(c.content)) refuse_for_delta(s, c, to, dropped);
  if (to.names) check_names(c.content, *to.names, false);
  const bool changed = drop(c, dropped, codec_of(to) == flash_image);
  if (!c.warning.empty()) std::fprintf(stderr, "gradus-checkpoint: warning: %s\n", visible(c.warning).c_str());
  if (!changed && reads && !s.names)
    if (const auto again = write_again(c, to)) return done(s, *again, c.content);
  return done(s, write(c.content, to), c.content);
}

int compact(const settings& s, const std::vector<std::string>& chain, destination to) {
  to.names = s.names;
  check_options(to);
  std::vector<opened> files;
  for (const auto& path : chain) {
    files.push_back(open(path));
    drop(files.back(), {});
  }
  std::vector<gradus::named_snapshot> snapshots;
  for (const auto& f : files) snapshots.push_back({f.what.path, &f.content});
  const auto whole = gradus::compact(snapshots.front(), std::span(snapshots).subspan(1));
  if (to.names) check_names(whole.content, *to.names, false);
  return done(s, write(whole.content, to), whole.content);
}

}  // namespace tool
