// The bodies of state_file.hpp.
#pragma once
#include <algorithm>
#include <charconv>

#include "../base/body.hpp"
#include "../store/crc32c.hpp"
#include "../store/decimal.hpp"
#include "state_file.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY bool checkpoint_state::keeps(std::string_view name) const {
  return std::find(all.begin(), all.end(), name) != all.end() ||
         std::any_of(best.begin(), best.end(), [&](const auto& b) { return b.first == name; });
}

}  // namespace gradus

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::string quoted(std::string_view s) {
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

GRADUS_BODY text_fields::found text_fields::next(std::string& name, std::string& value) {
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

GRADUS_BODY std::string text_fields::word(std::string_view of) {
  const auto n = std::min(rest_.find_first_not_of(of), rest_.size());
  std::string out(rest_.substr(0, n));
  rest_.remove_prefix(n);
  return out;
}

GRADUS_BODY bool text_fields::string(std::string& out) {
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

GRADUS_BODY std::string hex(std::uint32_t n) {
  std::string out(8, '0');
  for (std::size_t i = 8; i-- > 0; n >>= 4) out[i] = "0123456789abcdef"[n & 15];
  return out;
}

GRADUS_BODY std::string check_state(std::string_view content) {
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

GRADUS_BODY bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

GRADUS_BODY bool stays_below(std::string_view path) {
  if (path.find('\0') != std::string_view::npos) return false;
  for (std::size_t at = 0; at <= path.size();) {
    const auto end = std::min(path.find('/', at), path.size());
    if (path.substr(at, end - at) == "..") return false;
    at = end + 1;
  }
  return true;
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::string to_text(const checkpoint_state& s) {
  std::string out = text(detail::state_head, "\nmodel_checkpoint_path: ", detail::quoted(s.newest), '\n');
  for (const auto& path : s.all) out += text("all_model_checkpoint_paths: ", detail::quoted(path), '\n');
  for (const double t : s.timestamps) out += text("all_model_checkpoint_timestamps: ", t, '\n');
  for (const auto& path : s.superseded) out += text("# superseded: ", detail::quoted(path), '\n');
  for (const auto& [path, metric] : s.best) out += text("# best: ", detail::quoted(path), " # metric: ", metric, '\n');
  return text(out, detail::state_checksum, detail::hex(crc32c(out)), '\n');
}

GRADUS_BODY std::string parse_checkpoint_state(std::string_view content, checkpoint_state& out) {
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

GRADUS_BODY std::optional<std::int64_t> checkpoint_step(std::string_view path) {
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

GRADUS_BODY state_problem try_read_state(const any_file_system& fs, const std::string& path, checkpoint_state& out) {
  std::vector<std::byte> bytes;
  if (auto p = try_read(fs, path, 16 << 20, bytes)) return {p, {}, p.error == ENOENT};
  return {{}, parse_checkpoint_state({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, out)};
}

GRADUS_BODY std::optional<checkpoint_state> read_state_file(const any_file_system& fs, const std::string& directory) {
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

GRADUS_BODY std::string listed_path(const any_file_system& fs, const std::string& directory, const std::string& said,
                                    std::string& warning) {
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

GRADUS_BODY bool is_newest_checkpoint(const any_file_system& fs, const std::string& directory, std::string_view path) {
  if (path.empty()) return true;
  checkpoint_state s;  // a damaged one does not prevent the evaluation of a checkpoint that is named by its path
  return !try_read_state(fs, join_path(directory, state_file_name), s) && file_name_of(path) == file_name_of(s.newest);
}

GRADUS_BODY std::string latest_checkpoint(const any_file_system& fs, const std::string& directory) {
  const auto state = read_state_file(fs, directory);
  if (!state) return {};
  std::string moved;
  auto path = listed_path(fs, directory, state->newest, moved);
  for (const std::string_view proof : {"", ".index"})  // a tensor_bundle is named by its prefix
    if (detail::uninterrupted([&] { return fs.exists(path + std::string(proof)); }) == 0) return path;
  return {};
}

}  // namespace gradus
