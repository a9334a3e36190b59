// runs: gradus-events
// The tool, from outside: what it prints and writes, and its exit codes, on small logs.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cmath>
#include <cstdlib>
#include <gradus/summary/histogram.hpp>
#include <gradus/summary/writer.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <limits>
#include <set>

extern char** environ;

namespace {
using namespace gradus;

std::string slurp(const std::string& path) {
  const auto bytes = read_file(posix{}, path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
bool contains(const std::string& s, std::string_view part) { return s.find(part) != std::string::npos; }

struct outcome {
  int code = -1;
  std::string out, err;
};

// Time that stands still, so that exported times are known.
struct still_clock {
  double now() const { return 1'700'000'000.5; }
  double elapsed() const { return 0; }
};
using writer = summary_writer<posix, still_clock>;

struct workshop {
  testing::temp_dir dir;
  std::string logs = join_path(dir.path(), "logs");

  std::string path(std::string_view name) const { return join_path(dir.path(), name); }
  outcome run(std::vector<std::string> words) const {
    words.insert(words.begin(), program());
    return start(std::move(words));
  }
  static std::string program() {
    const char* bin = std::getenv("GRADUS_BIN");
    return join_path(bin != nullptr ? bin : "build/bin", "gradus-events");
  }
  outcome start(std::vector<std::string> words) const {
    std::vector<char*> argv;
    for (auto& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    const auto out = path("stdout.txt"), err = path("stderr.txt");
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    ::posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    pid_t pid = -1;
    const int e = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (e != 0) raise({e, "start", words[0]});
    int status = 0;
    ::waitpid(pid, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), slurp(out), slurp(err)};
  }
  // Two runs: "a" was started again at step 3, "b" has a histogram and a tag that wants to be quoted.
  std::string write_logs() const {
    writer first(logs + "/a", {.hostname = "h"}, {}, {});
    first.start(0);
    for (int step = 1; step <= 4; ++step) first.add_scalar("loss", 1.0f / static_cast<float>(step), step);
    first.close();
    writer again(logs + "/a", {.hostname = "h"}, {}, {});
    again.start(3);
    again.add_scalar("loss", 0.25f, 3);
    again.close();
    writer b(logs + "/b", {.hostname = "h"}, {}, {});
    b.start(0);
    b.add_summary({{"loss", 2.0f}, {"<a,\"b\">", NAN}}, 1);
    b.add_summary(histogram_summary("h", std::vector<float>{1, 2}), 1);
    b.add_session_log(session_log_status::checkpoint, 1, "model.ckpt");
    b.close();
    return again.path();
  }
};

}  // namespace

TEST_CASE("gradus-events: list, tail, export, by TensorBoard's rules") {
  const workshop w;
  w.write_logs();
  const auto list = w.run({"list", w.logs});
  CHECK(list.code == 0);
  CHECK(list.err.empty());
  CHECK(list.out ==
        "run  tag      kind        points  first step  last step  last\n"
        "a    loss     scalars          3           1          3  0.25\n"  // the second START cut steps 3 and 4
        "b    <a,\"b\">  scalars          1           1          1   nan\n"
        "b    h        histograms       1           1          1\n"
        "b    loss     scalars          1           1          1     2\n");
  const auto json = w.run({"list", "--json", w.logs + "/b"});
  CHECK(contains(
      json.out,
      R"({"run":".","tag":"<a,\"b\">","kind":"scalars","points":1,"first_step":1,"last_step":1,"last":"NaN"})"));

  const auto csv = w.run({"export", w.logs});
  CHECK(csv.out ==
        "run,tag,wall_time,step,value\n"
        "a,loss,1700000000.5,1,1\n"
        "a,loss,1700000000.5,2,0.5\n"
        "a,loss,1700000000.5,3,0.25\n"
        "b,\"<a,\"\"b\"\">\",1700000000.5,1,nan\n"
        "b,loss,1700000000.5,1,2\n");
  CHECK(w.run({"export", "--format", "json", "--only", "loss", "-o", w.path("x.json"), w.logs}).code == 0);
  CHECK(slurp(w.path("x.json")) ==
        R"([{"run":"a","tag":"loss","points":[[1700000000.5,1,1],[1700000000.5,2,0.5],[1700000000.5,3,0.25]]},)"
        R"({"run":"b","tag":"loss","points":[[1700000000.5,1,2]]}])"
        "\n");

  const auto tail = w.run({"tail", "-n", "3", w.logs + "/b"});
  CHECK(tail.out ==
        "step 1  loss = 2, <a,\"b\"> = nan\n"
        "step 1  h = histograms of 129 bytes\n"
        "step 1  session CHECKPOINT model.ckpt\n");
}

TEST_CASE("gradus-events: what is exported steers no terminal, and tells NaN from the infinities") {
  const workshop w;
  writer out(w.logs, {.hostname = "h"}, {}, {});
  out.start(0);
  const std::string tag = "\x1b[31mred\u202e\x07\\";
  constexpr float inf = std::numeric_limits<float>::infinity();
  int step = 0;
  for (const float value : {NAN, inf, -inf, 1.0f}) out.add_summary({{tag, value}}, ++step);
  out.close();
  const std::string shown = R"(\x1b[31mred\u{202e}\x07\\)";
  CHECK(contains(w.run({"list", w.logs}).out, shown));
  const auto csv = w.run({"export", w.logs});
  CHECK(csv.out == "run,tag,wall_time,step,value\n.," + shown + ",1700000000.5,1,nan\n.," + shown +
                       ",1700000000.5,2,inf\n.," + shown + ",1700000000.5,3,-inf\n.," + shown + ",1700000000.5,4,1\n");
  const auto json = w.run({"export", "--format", "json", w.logs});
  CHECK(json.out == R"([{"run":".","tag":"\u001b[31mred\u202e\u0007\\","points":[[1700000000.5,1,"NaN"],)"
                    R"([1700000000.5,2,"Infinity"],[1700000000.5,3,"-Infinity"],[1700000000.5,4,1]]}])"
                    "\n");
  for (const auto* text : {&csv.out, &json.out})
    for (const char c : *text) CHECK((c == '\n' || static_cast<unsigned char>(c) >= 0x20));
}

TEST_CASE("gradus-events: plot makes a picture and a page that need nothing else") {
  const workshop w;
  w.write_logs();
  const auto svg = w.run({"plot", "--smooth", "0.6", w.logs});
  CHECK(svg.code == 0);
  CHECK(svg.out.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  CHECK(contains(svg.out, "&lt;a,&quot;b&quot;&gt;"));
  CHECK(!contains(svg.out, "nan"));
  CHECK(contains(svg.out, "class=\"faint\""));
  // Steps 1, 2, 3 stand at the left edge, in the middle and at the right edge of the panel.
  const auto plain = w.run({"plot", "--only", "loss", "-o", w.path("p.svg"), w.logs + "/a"});
  CHECK(plain.code == 0);
  const std::string picture = slurp(w.path("p.svg"));
  CHECK(contains(picture, "class=\"curve\" stroke=\"#0072b2\" d=\"M58.0 "));
  CHECK(contains(picture, "L242.0 "));
  CHECK(contains(picture, "L426.0 "));
  CHECK(w.run({"plot", "--log", "-o", w.path("p.html"), w.logs}).code == 0);
  const std::string page = slurp(w.path("p.html"));
  CHECK(page.starts_with("<!doctype html>"));
  CHECK(contains(page, "<td>a<td>loss<td>3<td>3<td>0.25"));
  for (const char* outside : {"<script", "href", "src=", "url("}) CHECK(!contains(page, outside));
}

namespace {
// The value of an attribute behind `from`, and the text of the element there.
double attribute(const std::string& s, std::size_t from, std::string_view name) {
  return std::strtod(s.c_str() + s.find(name, from) + name.size(), nullptr);
}
std::vector<std::size_t> places_of(const std::string& s, std::string_view what) {
  std::vector<std::size_t> out;
  for (auto at = s.find(what); at != std::string::npos; at = s.find(what, at + 1)) out.push_back(at);
  return out;
}
}  // namespace

TEST_CASE("gradus-events: plots of one point and of many, plain and logarithmic: seen, inside, and in powers") {
  // Each drawn from its first value to its last in `points` steps of `stride`.
  struct shape_of_curve {
    double from, to;
    int points;
    std::int64_t stride;
  };
  const shape_of_curve curves[] = {{0.5, 0.5, 1, 100},      {1e-9, 1e-9, 1, 7'000'000}, {0, 0, 1, 0},
                                   {100, 1e-4, 50, 50'000}, {1e9, 1e-9, 20, 1},         {0.3, 0.5, 20, 3},
                                   {-5, 5, 11, 1000},       {2, 2, 3, 123'457}};
  for (const bool logarithmic : {false, true})
    for (const auto& c : curves) {
      CAPTURE(c.from);
      CAPTURE(c.points);
      CAPTURE(logarithmic);
      const workshop w;
      writer log(w.logs + "/a", {.hostname = "h"}, {}, {});
      const std::string tag = "loss_of_" + std::string(200, 'w');
      for (int i = 0; i < c.points; ++i) {
        const double t = c.points > 1 ? i / (c.points - 1.0) : 0;
        const double v = c.from > 0 ? c.from * std::pow(c.to / c.from, t) : c.from + (c.to - c.from) * t;
        log.add_scalar(tag, static_cast<float>(v), (i + 1) * c.stride);
      }
      log.close();
      const auto plot = logarithmic ? w.run({"plot", "--log", w.logs}) : w.run({"plot", w.logs});
      REQUIRE(plot.code == 0);
      const std::string& svg = plot.out;
      const double width = attribute(svg, 0, "width=\""), height = attribute(svg, 0, "height=\"");
      // One point is a dot; more are a line.
      const bool drawn = !logarithmic || c.from > 0 || c.to > 0;
      if (drawn && c.points == 1) {
        const auto dots = places_of(svg, "<circle ");
        REQUIRE(dots.size() == 1);
        const double x = attribute(svg, dots[0], "cx=\""), y = attribute(svg, dots[0], "cy=\"");
        CHECK((x > 58 && x < 426 && y > 34 && y < 226));
        CHECK(attribute(svg, dots[0], " r=\"") >= 2);
      } else if (drawn) {
        CHECK(places_of(svg, "L").size() >= 2);
      }
      // Labels: at least one on each axis, inside the picture (letters of titles are bold, and a w is wide).
      std::vector<std::string> values;
      for (const auto at : places_of(svg, "<text")) {
        const auto begin = svg.find('>', at) + 1, end = svg.find("</text>", begin);
        std::string label = svg.substr(begin, end - begin);
        const double x = attribute(svg, at, " x=\""), y = attribute(svg, at, " y=\"");
        const bool middle = svg.compare(at, 15, "<text class=\"x\"") == 0,
                   right = svg.compare(at, 15, "<text class=\"y\"") == 0;
        if (right) values.push_back(label);
        if (const auto raised = label.find("<tspan"); raised != std::string::npos)
          label =
              label.substr(0, raised) + label.substr(label.find('>') + 1, label.find("</tspan>") - label.find('>') - 1);
        double wide = 0;
        for (const char k : label)
          if ((static_cast<unsigned char>(k) & 0xC0) != 0x80)
            wide += middle || right ? 7.0 : k == 'w' || static_cast<unsigned char>(k) > 127 ? 13.0 : 8.5;
        const double left_edge = middle ? x - wide / 2 : right ? x - wide : x;
        CHECK_MESSAGE(left_edge >= 0, label);
        CHECK_MESSAGE(left_edge + wide <= width, label);
        CHECK_MESSAGE((y > 0 && y < height), label);
      }
      CHECK(!values.empty());
      CHECK(!places_of(svg, "<text class=\"x\"").empty());
      if (logarithmic && c.from / c.to >= 1000)
        for (const auto& v : values) {
          const double power = std::log10(std::strtod(v.c_str(), nullptr));
          CHECK_MESSAGE((v.starts_with("10<tspan") || power == std::round(power)), v);
        }
    }
}

namespace {
float at(int i) { return 2 + static_cast<float>(i % 7); }
}  // namespace

TEST_CASE("gradus-events: a curve of many points is drawn among those that cannot be drawn") {
  // Of 5000 points these cannot be drawn: with --log also those below zero.
  struct curve {
    const char* what;
    bool logarithmic;
    float (*value)(int);
    std::size_t lines;  // the gaps, and one
  };
  constexpr float inf = std::numeric_limits<float>::infinity();
  const curve all[] = {
      {"the first of each two is NaN", false, [](int i) { return i % 2 == 0 ? NAN : at(i); }, 1},
      {"the second of each two is NaN", false, [](int i) { return i % 2 == 1 ? NAN : at(i); }, 1},
      {"every tenth can be drawn", false, [](int i) { return i % 10 == 3 ? at(i) : NAN; }, 1},
      {"infinities of both signs", false, [](int i) { return i % 3 == 0   ? at(i)
                                                             : i % 3 == 1 ? inf
                                                                          : -inf; }, 1},
      {"with negative ones", true, [](int i) { return i % 2 == 0 ? -at(i) : at(i); }, 1},
      {"with zeros", true, [](int i) { return i % 2 == 0 ? 0 : at(i); }, 1},
      {"a gap", false, [](int i) { return i >= 2000 && i < 3000 ? NAN : at(i); }, 2},
      {"a gap", true, [](int i) { return i >= 2000 && i < 3000 ? -1 : at(i); }, 2},
      {"nothing is lost", true, [](int i) { return at(i); }, 1}};
  for (const auto& c : all) {
    CAPTURE(c.what);
    const workshop w;
    writer log(w.logs, {.hostname = "h"}, {}, {});
    for (int i = 0; i < 5000; ++i) log.add_scalar("loss", c.value(i), i);
    log.close();
    const auto plot = c.logarithmic ? w.run({"plot", "--log", w.logs}) : w.run({"plot", w.logs});
    REQUIRE(plot.code == 0);
    const auto from = plot.out.find("class=\"curve\"");
    REQUIRE(from != std::string::npos);
    const auto begin = plot.out.find(" d=\"", from) + 4;
    const auto d = plot.out.substr(begin, plot.out.find('"', begin) - begin);
    CHECK(places_of(d, "M").size() == c.lines);
    CHECK(places_of(d, "L").size() > 250);
  }
}

TEST_CASE("gradus-events: the labels of values differ, and are inside the picture") {
  struct range {
    double from, to;
  };
  for (const auto& r :
       {range{1.00001, 1.00005}, range{1.2321e6, 1.2325e6}, range{-1.2321e6, -1.2325e6}, range{100.001, 100.003},
        range{-0.500001, -0.500003}, range{1e-7, 1.00005e-7}, range{123456, 123460}, range{1.0000e9, 1.0001e9},
        range{1e30, 1.0001e30}, range{-1, 1}, range{0, 1e6}, range{0.25, 0.5}})
    for (const bool logarithmic : {false, true}) {
      CAPTURE(r.from);
      CAPTURE(logarithmic);
      if (logarithmic && r.from <= 0) continue;
      const workshop w;
      writer log(w.logs, {.hostname = "h"}, {}, {});
      for (int i = 0; i < 20; ++i) log.add_scalar("loss", static_cast<float>(r.from + (r.to - r.from) * i / 19), i);
      log.close();
      const auto plot = logarithmic ? w.run({"plot", "--log", w.logs}) : w.run({"plot", w.logs});
      REQUIRE(plot.code == 0);
      std::set<std::string> labels;
      std::size_t n = 0;
      for (const auto at : places_of(plot.out, "<text class=\"y\"")) {
        const auto begin = plot.out.find('>', at) + 1;
        const auto label = plot.out.substr(begin, plot.out.find("</text>", begin) - begin);
        if (contains(label, "tspan")) continue;  // a power of ten, short
        CHECK_MESSAGE(attribute(plot.out, at, " x=\"") >= 7 * static_cast<double>(label.size()), label);
        CHECK_MESSAGE(labels.insert(label).second, label);
        ++n;
      }
      CHECK(n >= 2);
    }
}

TEST_CASE("gradus-events: a series that a restart left without points is not drawn") {
  const workshop w;
  writer first(w.logs + "/a", {.hostname = "h"}, {}, {});
  first.start(0);
  first.add_scalar("loss", 1, 5);
  first.close();
  writer again(w.logs + "/a", {.hostname = "h"}, {}, {});
  again.start(1);
  again.add_scalar("accuracy", 1, 1);
  again.close();
  writer other(w.logs + "/b", {.hostname = "h"}, {}, {});
  other.start(0);
  other.add_scalar("accuracy", 0.5f, 1);
  other.close();
  CHECK(contains(w.run({"list", w.logs}).out, "loss      scalars       0"));
  const auto plot = w.run({"plot", w.logs});
  CHECK(plot.code == 0);
  CHECK(contains(plot.out, ">accuracy<"));
  for (const char* none : {">loss<", "nan", "inf"}) CHECK(!contains(plot.out, none));
  CHECK(w.run({"plot", "--only", "loss", w.logs}).code == 2);
}

TEST_CASE("gradus-events: a result that standard output does not take is no success") {
  const workshop w;
  w.write_logs();
  for (const char* words : {"--help", "list", "tail", "export", "export --format json", "plot"}) {
    CAPTURE(words);
    const std::string path = words[0] == '-' ? "" : " '" + w.logs + "'";
    const auto full = w.start({"sh", "-c", text("'", workshop::program(), "' ", words, path, " > /dev/full")});
    CHECK(full.code == 2);
    CHECK_MESSAGE(contains(full.err, "standard output took only a part of the result, or nothing: "), full.err);
  }
}

TEST_CASE("gradus-events: no name begins a line of a message") {
  const workshop w;
  writer log(w.logs + "/a\ngradus-events: all is well", {.hostname = "h"}, {}, {});
  log.add_scalar("loss", 1, 5);
  log.close();
  const auto whole = slurp(log.path());
  publish(posix{}, log.path(), std::string_view(whole).substr(0, whole.size() - 5));
  const auto torn = w.run({"list", w.logs});
  CHECK(contains(torn.err, "ends inside a record"));
  CHECK(std::count(torn.err.begin(), torn.err.end(), '\n') == 1);
}

TEST_CASE("gradus-events: runs inside runs, in the order of their names; other files are not looked at") {
  const workshop w;
  for (const char* run : {"digits", "digits/eval", "digits/eval/again"}) {
    writer log(w.logs + '/' + run, {.hostname = "h"}, {}, {});
    log.add_scalar("loss", 1, 5);
    log.close();
  }
  publish(posix{}, w.logs + "/digits/model-5.ckpt", std::string_view("no events"));
  publish(posix{}, w.logs + "/digits/events.out.tfevents.1.h.profile-empty", std::string_view());
  const auto csv = w.run({"export", w.logs});
  CHECK(csv.code == 0);
  CHECK(csv.out ==
        "run,tag,wall_time,step,value\n"
        "digits,loss,1700000000.5,5,1\n"
        "digits/eval,loss,1700000000.5,5,1\n"
        "digits/eval/again,loss,1700000000.5,5,1\n");
  const auto tail = w.run({"tail", "-n", "1", w.logs});
  CHECK(tail.code == 0);
  CHECK(contains(tail.out, "/digits/eval/again/events.out.tfevents.1700000000.h <==\nstep 5  loss = 1\n"));
  const auto plot = w.run({"plot", w.logs});
  CHECK(contains(plot.out, ">digits/eval/again</text>"));
}

TEST_CASE("gradus-events: torn, damaged and missing files") {
  const workshop w;
  const std::string file = w.write_logs();
  const std::string whole = slurp(file);
  publish(posix{}, file, std::string_view(whole).substr(0, whole.size() - 5));
  const auto torn = w.run({"list", w.logs + "/a"});
  CHECK(torn.code == 0);  // killed, or still being written
  CHECK(contains(torn.err, "ends inside a record"));
  std::string damaged = whole;
  damaged[damaged.size() - 6] ^= 1;
  publish(posix{}, file, damaged);
  const auto bad = w.run({"list", w.logs});
  CHECK(bad.code == 1);
  CHECK(contains(bad.err, "corrupted record at byte"));
  CHECK(contains(bad.out, "b    loss"));
  const auto none = w.run({"list", w.path("none")});
  CHECK(none.code == 2);
  CHECK(contains(none.err, "no event file"));
  CHECK(w.run({"plot", "--only", "zzz", w.logs}).code == 2);
  CHECK(w.run({"export", "--format", "xml", w.logs}).code == 2);
  CHECK(w.run({}).code == 2);
  const auto help = w.run({"--help"});
  CHECK(help.code == 0);
  for (const char* word : {"list", "tail", "export", "plot", "Exit codes"}) CHECK(contains(help.out, word));
}

TEST_CASE("--limits: what a log may cost") {
  const workshop w;
  w.write_logs();
  const auto little = w.run({"list", w.logs, "--limits", "entries=1"});
  CHECK(little.code == 1);
  CHECK_MESSAGE(contains(little.err, "raise reader_limits::entries"), little.err);
  const auto small = w.run({"list", w.logs, "--limits", "record_bytes=20"});
  CHECK(small.code == 1);
  CHECK_MESSAGE(contains(small.err, "raise reader_limits::record_bytes"), small.err);
  CHECK(w.run({"list", w.logs, "--limits", "none"}).code == 0);
  CHECK(w.run({"list", w.logs, "--limits", "entries=x"}).code == 2);
}
