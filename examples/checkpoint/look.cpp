// The commands that only read.
#include <gradus/checkpoint/delta.hpp>
#include <gradus/checkpoint/folder.hpp>

#include <ctime>
#include <map>

#include "commands.hpp"
#include "numbers.hpp"
#include "output.hpp"

namespace tool {

namespace {
using gradus::record, gradus::text;

void print(const std::string& s) { std::fwrite(s.data(), 1, s.size(), stdout); }

// "1.2 MB", in powers of 1000 as disks are sold; exact below.
std::string size_text(std::uint64_t bytes) {
  constexpr const char* units[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
  double n = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; n >= 999.95 && unit < 6; n /= 1000) ++unit;
  char out[32];
  std::snprintf(out, sizeof out, unit == 0 ? "%.0f %s" : "%.1f %s", n, units[unit]);
  return out;
}
std::string time_text(double seconds) {
  if (!(std::abs(seconds) < 1e11)) return text(seconds);
  const auto t = static_cast<std::time_t>(seconds);
  std::tm parts{};
  char out[40];
  return gmtime_r(&t, &parts) != nullptr && std::strftime(out, sizeof out, "%Y-%m-%d %H:%M:%S UTC", &parts) != 0
             ? out
             : text(seconds);
}
std::string codec_text(const std::string& codec, const std::string& each) {
  return visible(each.empty() ? codec : text(codec, '<', each, '>'));
}
// A number as people read it in a column.
std::string short_text(double x) {
  char out[32];
  std::snprintf(out, sizeof out, "%.6g", x);
  return out;
}
std::string short_text(const std::string& exact) {
  return exact.size() <= 12 ? exact : short_text(std::strtod(exact.c_str(), nullptr));
}
std::string kind_text(const record& r) {
  if (r.opaque) return visible(gradus::detail::opaque_text(*r.opaque));
  return r.blob ? text("blob[", r.bytes.size(), ']') : text(gradus::name_of(r.type), gradus::to_text(r.dims));
}
void put_shape(json_out& j, const record& r) {
  j.key("shape").open('[');
  for (int i = 0; i < r.dims.rank; ++i) j.put(r.dims[i]);
  for (std::size_t i = 0; r.opaque && i < r.opaque->shape.size(); ++i) j.put(r.opaque->shape[i]);
  j.close();
}
// Bytes without numbers that could be shown.
bool is_raw(const record& r) { return r.blob || r.opaque; }
void put_codec(json_out& j, const std::string& codec, const std::string& each) {
  j.put("codec", codec);
  if (!each.empty()) j.put("each", each);
}
// What `list` says of a checkpoint that it cannot open.
std::string remark_of(gradus::status kind) {
  return kind == gradus::status::not_found ? "MISSING" : kind == gradus::status::data_loss ? "DAMAGED" : "UNREAD";
}
}  // namespace

int list(const settings& s, const std::string& path) {
  if (s.names) throw usage_error("--names maps names of tensors, and `list` shows none; leave it out");
  const auto d = look_into(path);
  if (!d.has_state && d.checkpoints.empty())
    gradus::raise(gradus::status::not_found, text("there are no checkpoints in \"", path, "\"; check the path"));
  if (s.json) {
    json_out j;
    j.open('{').put("directory", d.path).put("state_file", d.has_state);
    if (!d.state_problem.empty()) j.put("state_problem", d.state_problem);
    j.key("checkpoints").open('[');
    for (const auto& c : d.checkpoints) {
      j.open('{').put("path", c.path);
      put_codec(j, c.codec, c.each);
      c.step ? j.put("step", *c.step) : j.key("step").null();
      j.put("bytes", c.bytes).key("files").open('[');
      for (const auto& f : c.files) j.put(f);
      j.close().put("newest", c.newest).put("kept", c.kept).put("superseded", c.superseded);
      c.saved_at ? j.put("saved_at", *c.saved_at) : j.key("saved_at").null();
      c.metric ? j.put("metric", *c.metric) : j.key("metric").null();
      if (!c.problem.empty()) j.put("problem", c.problem);
      j.close();
    }
    j.close().key("leftovers").open('[');
    for (const auto& f : d.leftovers) j.put(f);
    print(j.close().close().str() + '\n');
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {{"checkpoint", "codec", "+step", "+size", "+files", "saved", ""}};
  for (const auto& c : d.checkpoints) {
    std::string remark = !c.problem.empty() ? remark_of(c.kind) : c.newest ? "newest" : "";
    const auto add = [&](const std::string& what) { remark += (remark.empty() ? "" : ", ") + what; };
    if (c.metric) add(text("best: ", *c.metric));
    if (!c.warning.empty()) add("moved");
    if (c.superseded) add("superseded");
    if (d.has_state && d.state_problem.empty() && !c.kept && !c.superseded) add("not in the state file");
    rows.push_back({visible(gradus::file_name_of(c.path)), codec_text(c.codec, c.each), c.step ? text(*c.step) : "",
                    size_text(c.bytes), text(c.files.size()), c.saved_at ? time_text(*c.saved_at) : "", remark});
  }
  print(table(rows));
  if (!d.state_problem.empty()) print(visible(d.state_problem) + '\n');
  for (const auto& f : d.leftovers) print("left over: " + visible(f) + '\n');
  return 0;
}

int show(const settings& s, const std::string& path, std::size_t values, const std::string& only) {
  const auto c = open(path, s.names);
  const auto& content = c.content;
  std::uint64_t bytes = 0, numbers = 0;
  for (const auto& r : content.records) {
    bytes += r.bytes.size();
    if (!is_raw(r)) numbers += static_cast<std::uint64_t>(gradus::count(r.dims));
  }
  json_out j;
  std::vector<std::vector<std::string>> rows = {
      {"name", "type", "+bytes", "+min", "+max", "+mean", "+std", "+zeros", "+nan", "+inf"}};
  std::string listing;
  if (s.json) {
    j.open('{').put("path", c.what.path);
    put_codec(j, c.what.codec, c.what.each);
    j.put("step", content.step).key("metadata").open('{');
    for (const auto& [key, value] : content.about) j.put(key, value);
    j.close();
    if (!c.warning.empty()) j.put("warning", c.warning);
    j.put("tensor_bytes", bytes).put("elements", numbers).key("tensors").open('[');
  }
  for (const auto& r : content.records) {
    if (r.name.find(only) == std::string::npos) continue;
    const auto few = is_raw(r) ? std::vector<std::string>{} : first_values(r, values);
    const auto n = is_raw(r) ? statistics{} : statistics_of(r);
    if (s.json) {
      j.open('{').put("name", r.name);
      if (!gradus::is_utf8(r.name)) j.put("name_escaped", true);
      j.put("dtype", r.opaque ? std::string_view(r.opaque->type) : gradus::name_of(r.type));
      put_shape(j, r);
      j.put("bytes", r.bytes.size()).put("blob", r.blob);
      if (r.opaque) j.put("opaque", true);
      if (!is_raw(r)) {
        const auto exact = [&](std::string_view key, const std::string& value) {
          value.empty() ? j.key(key).null() : j.key(key).raw(value);
        };
        exact("min", n.min), exact("max", n.max);
        n.min.empty() ? j.key("mean").null().key("std").null() : j.put("mean", n.mean).put("std", n.deviation);
        j.put("zeros", n.zeros).put("nan", n.nans).put("inf", n.infinities);
      }
      if (values != 0) {
        j.key("values").open('[');
        for (const auto& v : few) v.find_first_of("ni") < 2 ? j.put(v) : j.raw(v);  // nan, -inf: text
        j.close();
      }
      j.close();
      continue;
    }
    rows.push_back({visible(r.name), kind_text(r), text(r.bytes.size())});
    if (!is_raw(r) && !n.min.empty())
      for (const auto& cell : {short_text(n.min), short_text(n.max), short_text(n.mean), short_text(n.deviation)})
        rows.back().push_back(cell);
    rows.back().resize(7);
    for (const auto count : {n.zeros, n.nans, n.infinities}) rows.back().push_back(is_raw(r) ? "" : text(count));
    if (values != 0 && !is_raw(r)) {
      listing += visible(r.name) + ":";
      for (const auto& v : few) listing += ' ' + v;
      listing += few.size() < n.count ? " ...\n" : "\n";
    }
  }
  if (s.json) {
    print(j.close().close().str() + '\n');
    return 0;
  }
  print(visible(c.what.path) + "\n  codec " + codec_text(c.what.codec, c.what.each) + ", step " + text(content.step) +
        '\n');
  for (const auto& [key, value] : content.about) print("  " + visible(key) + ": " + visible(value) + '\n');
  if (!c.warning.empty()) print("  warning: " + visible(c.warning) + '\n');
  print(text("  ", content.records.size(), " tensors, ", numbers, " elements, ", size_text(bytes), "\n\n"));
  print(table(rows) + (listing.empty() ? "" : "\n" + listing));
  return 0;
}

int diff(const settings& s, const std::string& a, const std::string& b, const tolerance& allowed) {
  bool mapped = false;
  const auto read = [&](const std::string& path) {
    const bool is_bundle = detect(path).codec == "tensor_bundle";
    mapped = mapped || is_bundle;
    return open(path, is_bundle ? s.names : naming{});
  };
  const auto left = read(a), right = read(b);
  if (s.names && !mapped)
    throw usage_error(text("--names maps names of a tensor_bundle, but \"", a, "\" is ", left.what.codec, " and \"", b,
                           "\" is ", right.what.codec, "; leave it out"));
  std::map<std::string_view, std::pair<const record*, const record*>> all;
  for (const auto& r : left.content.records) all[r.name].first = &r;
  for (const auto& r : right.content.records) all[r.name].second = &r;
  json_out j;
  j.open('{').put("a", left.what.path).put("b", right.what.path);
  std::string only_a, only_b, other;
  std::vector<std::vector<std::string>> rows = {
      {"name", "type", "+differ", "+of", "+largest", "+relative", "at element"}};
  std::uint64_t same = 0;
  std::vector<std::string_view> names[2];
  bool differ = false;
  std::string unknown;  // what one of them holds and could not be read
  json_out types, numbers, uncompared;
  uncompared.open('[');
  for (const auto* side : {&left, &right})
    for (const auto& name : side->lost) {
      differ = true;
      uncompared.put(name);
      unknown += "  " + visible(name) + "  in " + visible(side->what.path) + '\n';
    }
  types.open('['), numbers.open('[');
  for (const auto& [name, both] : all) {
    const auto [x, y] = both;
    if (x == nullptr || y == nullptr) {
      differ = true;
      names[x == nullptr].push_back(name);
      (x == nullptr ? only_b : only_a) += "  " + visible(name) + "  " + kind_text(x == nullptr ? *y : *x) + '\n';
      continue;
    }
    const bool other_kind = x->opaque && y->opaque ? *x->opaque != *y->opaque
                                                   : x->opaque || y->opaque || x->type != y->type ||
                                                         x->blob != y->blob || (!x->blob && !(x->dims == y->dims));
    if (other_kind) {
      differ = true;
      types.open('{').put("name", name).put("a", kind_text(*x)).put("b", kind_text(*y)).close();
      other += "  " + visible(name) + "  " + kind_text(*x) + " | " + kind_text(*y) + '\n';
      continue;
    }
    if (is_raw(*x)) {
      if (std::ranges::equal(x->bytes, y->bytes)) {
        ++same;
        continue;
      }
      differ = true;
      numbers.open('{').put("name", name).put(x->blob ? "blob" : "opaque", true).close();
      rows.push_back(
          {visible(name), x->blob ? kind_text(*x) + " | " + kind_text(*y) : kind_text(*x), "", "", "", "", ""});
      continue;
    }
    const auto d = difference_of(*x, *y, allowed.absolute, allowed.relative);
    if (!d.beyond) {
      ++same;
      continue;
    }
    differ = true;
    numbers.open('{').put("name", name).put("differ", d.count).put("of", gradus::count(x->dims));
    numbers.put("max_abs", d.absolute).put("max_rel", d.relative).put("at", d.at).close();
    rows.push_back({visible(name), kind_text(*x), text(d.count), text(gradus::count(x->dims)), short_text(d.absolute),
                    short_text(d.relative), text(d.at)});
  }
  if (s.json) {
    j.put("differ", differ).put("same", same).key("step").open('[');
    j.put(left.content.step).put(right.content.step).close();
    for (const int side : {0, 1}) {
      j.key(side == 0 ? "only_a" : "only_b").open('[');
      for (const auto name : names[side]) j.put(name);
      j.close();
    }
    j.key("not_compared").raw(uncompared.close().str());
    j.key("other_type").raw(types.close().str()).key("other_values").raw(numbers.close().str());
    print(j.close().str() + '\n');
    return differ ? 1 : 0;
  }
  if (left.content.step != right.content.step) print(text("step ", left.content.step, " | ", right.content.step, '\n'));
  auto keys = left.content.about;
  keys.insert(right.content.about.begin(), right.content.about.end());
  const auto value = [](const opened& c, const std::string& key) {
    const auto at = c.content.about.find(key);
    return at == c.content.about.end() ? "(none)" : visible(at->second);
  };
  for (const auto& [key, first] : keys)
    if (key != "codec" && value(left, key) != value(right, key))
      print(visible(key) + ": " + value(left, key) + " | " + value(right, key) + '\n');
  if (!only_a.empty()) print("only in " + visible(left.what.path) + ":\n" + only_a);
  if (!only_b.empty()) print("only in " + visible(right.what.path) + ":\n" + only_b);
  if (!unknown.empty()) print("could not be compared:\n" + unknown);
  if (!other.empty()) print("other types or shapes:\n" + other);
  if (rows.size() > 1) print("other values:\n" + table(rows));
  print(
      text(same, same == 1 ? " tensor is" : " tensors are",
           allowed.absolute == 0 && allowed.relative == 0 ? " equal, bit for bit\n" : " equal within the tolerance\n"));
  return differ ? 1 : 0;
}

namespace {
struct verdict {
  std::string path, codec, problem, warning;
  gradus::status kind = {};  // of the problem
  std::uint64_t tensors = 0, opaque = 0;

  // Otherwise a problem says that nobody could look: there is no verdict on the file's bytes.
  bool is_damaged() const {
    return !problem.empty() && (kind == gradus::status::data_loss || kind == gradus::status::not_found);
  }
};
std::string problem_of_delta(const gradus::snapshot& content) {
  const auto said = gradus::detail::said(content, gradus::delta_keys::checksum);
  return gradus::is_delta(content) && said != text(gradus::content_checksum(content))
             ? "it is a delta, and its content has not the checksum that it says"
             : "";
}
verdict judge(const std::string& path, const naming& names, bool is_in_directory) {
  verdict v{path, {}, {}, {}};
  try {
    const auto found = detect(path);
    v.path = found.path, v.codec = codec_text(found.codec, found.each);
    const auto c = try_open(path, found.codec == "tensor_bundle" ? names : naming{});
    v.problem = c.problem, v.warning = c.warning, v.tensors = c.content.records.size(), v.kind = c.kind;
    for (const auto& r : c.content.records) v.opaque += r.opaque != nullptr;
    if (!v.problem.empty()) return v;
    v.problem = problem_of_delta(c.content), v.kind = gradus::status::data_loss;
    if (v.problem.empty() && is_in_directory) v.problem = gradus::detail::wrong_step(v.path, c.content);
  } catch (const usage_error&) {
    throw;
  } catch (const gradus::error& e) {
    v.problem = e.what(), v.kind = e.kind();
  }
  return v;
}
// Of a directory: its state file and everything in it.
std::vector<verdict> judge_all(const std::string& path, const naming& names, std::vector<std::string>& notes) {
  std::vector<verdict> out;
  const auto d = look_into(path);
  if (!d.has_state && d.checkpoints.empty())
    gradus::raise(gradus::status::not_found, text("there are no checkpoints in \"", path, "\"; check the path"));
  if (d.has_state) {
    out.push_back({gradus::join_path(path, gradus::state_file_name), "state file", d.state_problem, {}, d.state_kind});
    out.back().tensors = d.checkpoints.size();
  }
  for (const auto& c : d.checkpoints)
    out.push_back(c.problem.empty() ? judge(c.path, names, true) : verdict{c.path, {}, c.problem, {}, c.kind});
  for (const auto& f : d.leftovers) notes.push_back(gradus::join_path(path, f));
  return out;
}
}  // namespace

int verify(const settings& s, const std::vector<std::string>& paths) {
  std::vector<verdict> verdicts;
  std::vector<std::string> notes;
  for (const auto& path : paths) try {
      if (is_directory(path)) {
        for (auto& v : judge_all(path, s.names, notes)) verdicts.push_back(std::move(v));
      } else {
        detect(path);  // raises for what is not there at all, which is no damage
        verdicts.push_back(judge(path, s.names, false));
      }
    } catch (const usage_error&) {
      throw;
    } catch (const gradus::error& e) {
      const bool is_absent = e.kind() == gradus::status::not_found;
      verdicts.push_back({path, {}, e.what(), {}, is_absent ? gradus::status::failed_precondition : e.kind()});
    }
  // One that was not found, or has no known format, has no codec.
  const auto may_be_bundle = [](const verdict& v) { return v.codec == "tensor_bundle" || v.codec.empty(); };
  if (s.names && std::ranges::none_of(verdicts, may_be_bundle))
    throw usage_error("--names maps names of a tensor_bundle, and there is none here; leave it out");
  bool intact = true, damaged = false;
  for (const auto& v : verdicts) intact = intact && v.problem.empty(), damaged = damaged || v.is_damaged();
  const int code = damaged ? 1 : intact ? 0 : 2;
  if (s.json) {
    json_out j;
    j.open('{').put("intact", intact).key("checked").open('[');
    for (const auto& v : verdicts) {
      j.open('{').put("path", v.path).put("codec", v.codec).put("intact", v.problem.empty());
      if (!v.problem.empty()) j.put("damaged", v.is_damaged()).put("problem", v.problem);
      if (!v.warning.empty()) j.put("warning", v.warning);
      j.close();
    }
    j.close().key("leftovers").open('[');
    for (const auto& n : notes) j.put(n);
    print(j.close().close().str() + '\n');
    return code;
  }
  for (const auto& v : verdicts) {
    if (!v.problem.empty())
      print((v.is_damaged() ? "DAMAGED " : "UNREAD  ") + visible(v.path) + ": " + visible(v.problem) + '\n');
    else
      print("ok      " + visible(v.path) + "  " + v.codec + ", " +
            text(v.tensors, v.codec == "state file" ? " checkpoints" : " tensors") +
            (v.opaque != 0 ? text(" (", v.opaque, " opaque)") : "") +
            (v.warning.empty() ? "" : "; warning: " + visible(v.warning)) + '\n');
  }
  for (const auto& n : notes) print("left over: " + visible(n) + '\n');
  return code;
}

}  // namespace tool
