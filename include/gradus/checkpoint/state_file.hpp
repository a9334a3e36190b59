// The file `checkpoint` beside the checkpoints: which of them there are, and which is the newest. TensorFlow's
// CheckpointState as a text protocol buffer, readable by its tools:
//
//   model_checkpoint_path: "model-2000.ckpt"
//   all_model_checkpoint_paths: "model-1000.ckpt"        in the order of saving, newest last
//   all_model_checkpoint_paths: "model-2000.ckpt"
//   all_model_checkpoint_timestamps: 1792000000.5        seconds since the epoch, one for each
//
// Here the paths are file names with the codec's extension (none for tensor_bundle: as in TensorFlow, its prefix),
// relative to the directory, which can therefore be moved. Comment lines hold what CheckpointState has no field for:
// `# superseded: "model-500.ckpt"` names what a save was about to delete, so that a process killed there leaves nothing
// behind for ever, and `# best: "model-700.ckpt" # metric: 0.97` what is kept for its metric. The first line says that
// the last one is a checksum, `# crc32c: 89abcdef`, of all bytes before it: a flipped bit or a cut file must not name
// an older checkpoint. Files without that (TensorFlow's, those of gradus 0.5.0) are read as they are.
#pragma once
#include <algorithm>
#include <charconv>
#include <optional>

#include "../store/crc32c.hpp"
#include "../store/decimal.hpp"
#include "../store/file.hpp"

namespace gradus {

inline constexpr std::string_view state_file_name = "checkpoint";

struct checkpoint_state {
  std::string newest;            // model_checkpoint_path
  std::vector<std::string> all;  // oldest first; the last is `newest`
  std::vector<double> timestamps;
  std::vector<std::string> superseded;
  std::vector<std::pair<std::string, double>> best = {};  // kept for their metric, the best first

  bool keeps(std::string_view name) const {
    return std::find(all.begin(), all.end(), name) != all.end() ||
           std::any_of(best.begin(), best.end(), [&](const auto& b) { return b.first == name; });
  }
};

namespace detail {

inline std::string quoted(std::string_view s) {
  std::string out = "\"";
  for (const char c : s) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (u < 0x20 || u >= 0x7F)
      for (const int shift : {9, 6, 3, 0}) out += shift == 9 ? '\\' : static_cast<char>('0' + ((u >> shift) & 7));
    else
      out += c;
  }
  return out + '"';
}

// The part of the text format that CheckpointState needs: `name: value` with strings and numbers, comments.
class text_fields {
public:
  explicit text_fields(std::string_view text) : rest_(text) {}

  enum class found { field, end, nonsense };
  // The next field; a string's value comes unescaped. Comments that this library writes come as fields of their name.
  found next(std::string& name, std::string& value) {
    for (;;) {
      rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n;,"), rest_.size()));
      if (!rest_.starts_with('#')) break;
      for (const std::string_view mark : {"# superseded: ", "# best: "})
        if (rest_.starts_with(mark)) {
          rest_.remove_prefix(mark.size());
          name = mark.substr(2, mark.size() - 4);
          return string(value) ? found::field : found::nonsense;
        }
      if (constexpr std::string_view mark = "# metric: "; rest_.starts_with(mark)) {
        rest_.remove_prefix(mark.size());
        name = "metric";
        value = word("0123456789+-.eEinfaN");
        return value.empty() ? found::nonsense : found::field;
      }
      rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
    }
    if (rest_.empty()) return found::end;
    name = word("abcdefghijklmnopqrstuvwxyz_");
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size()));
    if (name.empty() || !rest_.starts_with(':')) return found::nonsense;
    rest_.remove_prefix(1);
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
    if (rest_.starts_with('"') || rest_.starts_with('\'')) return string(value) ? found::field : found::nonsense;
    value = word("0123456789+-.eEinfaN");
    return value.empty() ? found::nonsense : found::field;
  }
  std::size_t left() const { return rest_.size(); }

private:
  std::string word(std::string_view of) {
    const auto n = std::min(rest_.find_first_not_of(of), rest_.size());
    std::string out(rest_.substr(0, n));
    rest_.remove_prefix(n);
    return out;
  }
  bool string(std::string& out) {
    out.clear();
    if (rest_.empty()) return false;
    const char quote = rest_.front();
    for (std::size_t i = 1; i < rest_.size(); ++i) {
      char c = rest_[i];
      if (c == quote) {
        rest_.remove_prefix(i + 1);
        return true;
      }
      if (c == '\n' || c == '\0') return false;
      if (c == '\\') {
        if (++i == rest_.size()) return false;
        c = rest_[i];
        if (c >= '0' && c <= '7') {
          int code = 0, digits = 0;
          for (; digits < 3 && i < rest_.size() && rest_[i] >= '0' && rest_[i] <= '7'; ++digits, ++i)
            code = code * 8 + (rest_[i] - '0');
          --i;
          c = static_cast<char>(code);
        } else if (c == 'n' || c == 'r' || c == 't') {
          c = c == 'n' ? '\n' : c == 'r' ? '\r' : '\t';
        } else if (c != '\\' && c != '"' && c != '\'') {
          return false;
        }
      }
      out += c;
    }
    return false;
  }
  std::string_view rest_;
};

inline constexpr std::string_view state_head =
    "# gradus state 1: the last line is the checksum of what stands before it";
inline constexpr std::string_view state_checksum = "# crc32c: ";

inline std::string hex(std::uint32_t n) {
  std::string out(8, '0');
  for (std::size_t i = 8; i-- > 0; n >>= 4) out[i] = "0123456789abcdef"[n & 15];
  return out;
}
// What the checksum of a state file finds; nothing if it fits, or if there is none and none was promised.
inline std::string check_state(std::string_view content) {
  constexpr std::string_view by_hand = " (if it was changed by hand, delete its first and its last line)";
  const auto at = content.rfind(state_checksum);
  if (at == std::string_view::npos)
    return content.starts_with(state_head)
               ? text("it does not end with its checksum, so it is cut short or damaged", by_hand)
               : std::string();
  if (content.substr(at) != text(state_checksum, hex(crc32c(content.substr(0, at))), '\n'))
    return text("its checksum does not fit its bytes", by_hand);
  return {};
}

// A name in the state file's own directory: the only kind that is ever deleted.
inline bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}
// A path that may be read: absolute as the user made it, or below the directory.
inline bool stays_below(std::string_view path) {
  if (path.find('\0') != std::string_view::npos) return false;
  for (std::size_t at = 0; at <= path.size();) {
    const auto end = std::min(path.find('/', at), path.size());
    if (path.substr(at, end - at) == "..") return false;
    at = end + 1;
  }
  return true;
}

}  // namespace detail

inline std::string to_text(const checkpoint_state& s) {
  std::string out = text(detail::state_head, "\nmodel_checkpoint_path: ", detail::quoted(s.newest), '\n');
  for (const auto& path : s.all) out += text("all_model_checkpoint_paths: ", detail::quoted(path), '\n');
  for (const double t : s.timestamps) out += text("all_model_checkpoint_timestamps: ", t, '\n');
  for (const auto& path : s.superseded) out += text("# superseded: ", detail::quoted(path), '\n');
  for (const auto& [path, metric] : s.best) out += text("# best: ", detail::quoted(path), " # metric: ", metric, '\n');
  return text(out, detail::state_checksum, detail::hex(crc32c(out)), '\n');
}

// Why the text is no CheckpointState; nothing if it is, and then `out` is it.
inline std::string parse_checkpoint_state(std::string_view content, checkpoint_state& out) {
  if (auto damage = detail::check_state(content); !damage.empty()) return damage;
  detail::text_fields in(content);
  std::string name, value;
  for (;;) {
    const auto found = in.next(name, value);
    if (found == detail::text_fields::found::end) break;
    if (found == detail::text_fields::found::nonsense)
      return text("byte ", content.size() - in.left(), " begins no `name: value`");
    if (name == "model_checkpoint_path") out.newest = value;
    if (name == "all_model_checkpoint_paths") out.all.push_back(value);
    if (name == "superseded") out.superseded.push_back(value);
    if (name == "best") out.best.emplace_back(value, 0);
    if (name == "all_model_checkpoint_timestamps" || name == "metric") {
      double n = 0;
      const auto end = value.data() + value.size();
      if (detail::decimal_at(value.data(), end, n).ptr != end) return text("\"", value, "\" is no number");
      if (name == "metric" && out.best.empty()) return "a metric stands before what it measures";
      name == "metric" ? static_cast<void>(out.best.back().second = n) : out.timestamps.push_back(n);
    }
  }
  if (out.newest.empty()) return "it has no model_checkpoint_path";
  if (out.all.empty() || out.all.back() != out.newest) out.all.push_back(out.newest);
  for (const auto& path : out.all)
    if (!detail::stays_below(path)) return text("\"", path, "\" leads out of the directory");
  return {};
}

// Why a state file could not be read. False if it was.
struct state_problem {
  file_problem file = {};  // the file system's word,
  std::string damage;      // or what is wrong with the content
  bool missing = false;
  explicit operator bool() const { return file || !damage.empty(); }
};
template <file_system F>
state_problem try_read_state(const F& fs, const std::string& path, checkpoint_state& out) {
  std::vector<std::byte> bytes;
  if (auto p = try_read(fs, path, 16 << 20, bytes)) return {p, {}, p.error == ENOENT};
  return {{}, parse_checkpoint_state({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, out)};
}

// The state file of a directory; nothing if there is none. Raises data_loss if it cannot be understood (TensorFlow then
// warns and starts anew, which would quietly throw a run away).
template <file_system F>
std::optional<checkpoint_state> read_state_file(const F& fs, const std::string& directory) {
  const std::string path = join_path(directory, state_file_name);
  checkpoint_state state;
  const auto problem = try_read_state(fs, path, state);
  if (problem.missing) return std::nullopt;
  if (problem.file) raise(problem.file);
  if (problem)
    raise(status::data_loss,
          text("the state file \"", path, "\" is damaged: ", problem.damage,
               "; restore a checkpoint of this directory by its path, or delete the file and choose with "
               "restore_newest"));
  return state;
}

// Where a checkpoint lies that the state file of a directory names. A path of another machine, absolute and with
// nothing there, is taken for the checkpoint of that name beside the state file; then `warning` says so.
template <file_system F>
std::string listed_path(const F& fs, const std::string& directory, const std::string& said, std::string& warning) {
  const auto there = [&](const std::string& path) {
    for (const std::string_view proof : {"", ".index"})  // a tensor_bundle is named by its prefix
      if (detail::uninterrupted([&] { return fs.exists(path + std::string(proof)); }) == 0) return true;
    return false;
  };
  const auto path = join_path(directory, said);
  const bool absolute = said.starts_with('/') || said.starts_with('\\') || (said.size() > 2 && said[1] == ':');
  if (!absolute || there(path)) return path;
  const std::string name = said.substr(said.find_last_of("/\\") + 1);
  const auto beside = join_path(directory, name);
  if (!detail::is_plain_name(name) || !there(beside)) return path;
  warning += text(warning.empty() ? "" : "; ", "the state file names \"", said, "\", which is not there; \"", beside,
                  "\" beside it is taken");
  return beside;
}

// The path of the newest checkpoint by the state file; empty if there is no state file or the checkpoint it names is
// gone. As in TensorFlow there is no looking around for another one: that is restore_options::fallback.
template <file_system F>
std::string latest_checkpoint(const F& fs, const std::string& directory) {
  const auto state = read_state_file(fs, directory);
  if (!state) return {};
  auto path = join_path(directory, state->newest);
  for (const std::string_view proof : {"", ".index"})  // a tensor_bundle is named by its prefix
    if (detail::uninterrupted([&] { return fs.exists(path + std::string(proof)); }) == 0) return path;
  return {};
}

// The step in a checkpoint's name: "runs/model-150.ckpt" and "model-150" give 150, "model" nothing.
inline std::optional<std::int64_t> checkpoint_step(std::string_view path) {
  const auto name = file_name_of(path);
  const auto dash = name.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  std::int64_t step = 0;
  const char* begin = name.data() + dash + 1;
  const char* end = name.data() + name.size();
  const auto [stop, failed] = std::from_chars(begin, end, step);
  if (failed != std::errc{} || (stop != end && *stop != '.')) return std::nullopt;
  return step;
}

}  // namespace gradus
