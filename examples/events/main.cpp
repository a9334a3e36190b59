// gradus-events: looks into TensorBoard's event files without TensorBoard: lists, shows, exports and draws them.
//
// docs/tensorboard.md is its page. Exit codes: 0 done; 1 done, but a file is damaged; 2 it could not be done.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <deque>
#include <set>

#include "plot.hpp"

namespace {
using namespace events;

int say_notes(const std::vector<run>& runs) {
  bool damaged = false;
  for (const auto& r : runs) {
    for (const auto& n : r.notes) std::fprintf(stderr, "gradus-events: %s\n", tool::visible(n).c_str());
    for (const auto& d : r.damage) {
      std::fprintf(stderr, "gradus-events: %s\n", tool::visible(d).c_str());
      damaged = true;
    }
  }
  return damaged ? 1 : 0;
}

void print(const std::string& s) { std::fwrite(s.data(), 1, s.size(), stdout); }
void write(const std::string& path, const std::string& content) {
  if (path.empty() || path == "-") return print(content);
  gradus::publish(gradus::posix{}, path, content);
}

// Tags in order: those that hold `only`, of that kind, with a point in some run: a restart may have taken all of them.
std::vector<std::string> chosen(const std::vector<run>& runs, const std::string& only, std::string_view kind) {
  std::set<std::string> tags;
  for (const auto& r : runs)
    for (const auto& [tag, s] : r.tags)
      if (s.kind == kind && !s.points.empty() && tag.find(only) != std::string::npos) tags.insert(tag);
  if (tags.empty())
    gradus::raise(gradus::status::not_found, gradus::text("no ", kind, " here whose tag holds \"", only,
                                                          "\"; `gradus-events list` says which tags there are"));
  return {tags.begin(), tags.end()};
}

int list(const std::string& path, bool json) {
  const auto runs = read_runs(path);
  std::vector<std::vector<std::string>> rows{{"run", "tag", "kind", "+points", "+first step", "+last step", "+last"}};
  tool::json_out j;
  j.open('[');
  for (const auto& r : runs)
    for (const auto& [tag, s] : r.tags) {
      const bool some = !s.points.empty(), scalar = s.kind == "scalars" && some;
      rows.push_back({tool::visible(r.name), tool::visible(tag), tool::visible(s.kind), gradus::text(s.points.size()),
                      some ? gradus::text(s.points.front().step) : "", some ? gradus::text(s.points.back().step) : "",
                      scalar ? number(s.points.back().value) : ""});
      j.open('{').put("run", r.name).put("tag", tag).put("kind", s.kind).put("points", s.points.size());
      if (some) j.put("first_step", s.points.front().step).put("last_step", s.points.back().step);
      if (scalar) j.put("last", s.points.back().value);
      j.close();
    }
  j.close();
  print(json ? j.str() + "\n" : tool::table(rows));
  return say_notes(runs);
}

std::string line_of(const gradus::event& e) {
  std::string out = gradus::text("step ", e.step, "  ");
  switch (e.what) {
  case gradus::event_kind::summary:
    for (const auto& v : e.values) {
      out += gradus::text(&v == e.values.data() ? "" : ", ", tool::visible(v.tag), " = ");
      out += v.kind == gradus::value_kind::simple_value
                 ? number(v.simple_value)
                 : gradus::text(tool::visible(kind_of(v)), " of ", v.bytes.size(), " bytes");
    }
    break;
  case gradus::event_kind::file_version: out += "version " + tool::visible(e.file_version); break;
  case gradus::event_kind::session_log: {
    const char* names[] = {"?", "START", "STOP", "CHECKPOINT"};
    const auto n = static_cast<unsigned>(e.log.status);
    out += gradus::text("session ", names[n < 4 ? n : 0], " ", tool::visible(e.log.checkpoint_path),
                        tool::visible(e.log.msg));
    break;
  }
  case gradus::event_kind::graph_def: out += gradus::text("graph of ", e.bytes.size(), " bytes"); break;
  case gradus::event_kind::meta_graph_def: out += gradus::text("meta graph of ", e.bytes.size(), " bytes"); break;
  case gradus::event_kind::tagged_run_metadata:
    out += gradus::text("times of a step, ", e.bytes.size(), " bytes");
    break;
  default: out += "other"; break;
  }
  return out + "\n";
}

// The last events of every file, in the order of the file.
int tail(const std::string& path, std::size_t count) {
  const auto runs = read_runs(path);
  for (const auto& r : runs)
    for (const auto& file : r.files) {
      if (r.files.size() > 1 || runs.size() > 1) print("==> " + tool::visible(file) + " <==\n");
      std::deque<std::string> lines;
      try {
        for (const auto& e : gradus::summary_iterator(file, gradus::posix{}, tool::limits)) {
          lines.push_back(line_of(e));
          if (lines.size() > count) lines.pop_front();
        }
      } catch (const gradus::error&) {  // say_notes tells
      }
      for (const auto& line : lines) print(line);
    }
  return say_notes(runs);
}

std::string csv_field(std::string_view s) {
  if (s.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(s);
  std::string out = "\"";
  for (const char c : s) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

int write_out(const std::string& path, const std::string& only, const std::string& to, bool json) {
  const auto runs = read_runs(path);
  const auto tags = chosen(runs, only, "scalars");
  std::string csv = "run,tag,wall_time,step,value\n";
  tool::json_out j;
  j.open('[');
  for (const auto& r : runs)
    for (const auto& tag : tags)
      if (const auto at = r.tags.find(tag); at != r.tags.end() && at->second.kind == "scalars") {
        j.open('{').put("run", r.name).put("tag", tag).key("points").open('[');
        for (const auto& p : at->second.points) {
          if (json)
            j.open('[').put(p.wall_time).put(p.step).put(p.value).close();
          else
            csv += gradus::text(csv_field(tool::visible(r.name)), ',', csv_field(tool::visible(tag)), ',', p.wall_time,
                                ',', p.step, ',', p.value, '\n');
        }
        j.close().close();
      }
  j.close();
  write(to, json ? j.str() + "\n" : csv);
  return say_notes(runs);
}

int plot(const std::string& path, const std::string& only, const std::string& to, const plot_options& o) {
  const auto runs = read_runs(path);
  const auto tags = chosen(runs, only, "scalars");
  write(to, to.ends_with(".html") ? html(runs, tags, o, path) : svg(runs, tags, o));
  return say_notes(runs);
}

int run_command(int argc, char** argv) {
  std::string path, only, to, limits;
  std::string format = "csv";
  bool json = false;
  std::size_t count = 10;
  plot_options o;

  CLI::App app{
      "Looks into TensorBoard's event files: lists, shows, exports and draws them.\n"
      "PATH is an event file, or a directory: every directory below it that holds event files is a run.\n"
      "Exit codes: 0 done; 1 done, but a file is damaged; 2 it could not be done."};
  app.name("gradus-events");
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--limits", limits, tool::limits_help);
  auto* list_it = app.add_subcommand("list", "runs and tags, how many points they have, and the last");
  list_it->add_option("PATH", path, "a directory or an event file")->required();
  list_it->add_flag("--json", json, "print JSON, for programs");
  auto* tail_it = app.add_subcommand("tail", "the last events of each file");
  tail_it->add_option("PATH", path, "a directory or an event file")->required();
  tail_it->add_option("-n", count, "how many")->capture_default_str()->check(CLI::Range(1, 1000000));
  auto* export_it = app.add_subcommand("export", "scalars as CSV or JSON");
  export_it->add_option("PATH", path, "a directory or an event file")->required();
  export_it->add_option("--format", format, "csv: run,tag,wall_time,step,value; or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"csv", "json"}));
  auto* plot_it = app.add_subcommand("plot", "curves as an SVG picture or an HTML page, which need nothing else");
  plot_it->add_option("PATH", path, "a directory or an event file")->required();
  plot_it->add_option("--smooth", o.smoothing, "as TensorBoard's slider: 0 none, 0.99 much")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 0.9999));
  plot_it->add_flag("--log", o.logarithmic, "a logarithmic axis of values");
  plot_it->add_option("--columns", o.columns, "panels beside each other")
      ->capture_default_str()
      ->check(CLI::Range(1, 20));
  for (auto* command : {export_it, plot_it}) {
    command->add_option("--only", only, "only tags that hold this");
    command->add_option("--output,-o", to, "the file to write (plot: .svg or .html); else it is printed");
  }

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  try {
    if (!limits.empty()) tool::limits = tool::limits_of(limits);
    if (*list_it) return list(path, json);
    if (*tail_it) return tail(path, count);
    if (*export_it) return write_out(path, only, to, format == "json");
    return plot(path, only, to, o);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gradus-events: %s\n", tool::visible(e.what()).c_str());
    return 2;
  }
}

}  // namespace

int main(int argc, char** argv) { return tool::finished("gradus-events", run_command(argc, argv)); }
