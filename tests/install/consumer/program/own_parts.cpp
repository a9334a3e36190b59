// A program as its author wrote it against version 0.5.0: a rule, a schedule, a codec, a log sink, a file system, a
// clock, a source of data and a stage of its own. It compiles unchanged with every later version, trains, is stopped,
// goes on, and ends with the bits of a run that was not stopped.
// Of the flags that this file is built with for the library's sake, these are warnings that its author never asked for.
#pragma GCC diagnostic ignored "-Weffc++"
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
#include <gradus/gradus.hpp>
#include <gradus/update/rule.hpp>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <unistd.h>

namespace {

// A rule on numbers: momentum towards the sign of the gradient.
struct steady {
  using policy_for = gradus::kind::rule;
  static constexpr std::string_view name = "Steady";
  std::optional<double> rate = {};
  double beta = 0.9;

  constexpr auto slots() const { return std::array{gradus::slot{"mean", 0.0}}; }
  template <class N>
  struct constants {
    N beta, rate;
  };
  constexpr constants<double> prepare(const gradus::step_info& at) const { return {beta, at.rate}; }
  template <class N>
  N step(N theta, N g, const constants<N>& c, N& mean) const {
    mean = c.beta * mean + (N(1) - c.beta) * g;
    return theta - c.rate * mean;
  }
};

// Every second step is half as long.
struct limping {
  using policy_for = gradus::kind::schedule;
  double rate = 0.1;
  double operator()(std::int64_t step) const { return step % 2 == 0 ? rate : rate / 2; }
};

// Step, then for each tensor its name, type, extents and bytes, behind one another.
struct plain_file {
  using policy_for = gradus::kind::codec;
  static constexpr std::string_view name = "plain_file", extension = ".plain", proof = ".plain";
  static constexpr bool checks_itself = false;

  gradus::encoded encode(const gradus::snapshot& content) const {
    gradus::encoded out;
    std::vector<std::byte> bytes;
    const auto put = [&](const void* from, std::size_t n) {
      const auto* b = static_cast<const std::byte*>(from);
      bytes.insert(bytes.end(), b, b + n);
    };
    const auto number = [&](std::int64_t n) { put(&n, sizeof n); };
    number(content.step);
    number(static_cast<std::int64_t>(content.records.size()));
    for (const auto& r : content.records) {
      number(static_cast<std::int64_t>(r.name.size()));
      put(r.name.data(), r.name.size());
      number(static_cast<std::int64_t>(r.type)), number(r.blob ? 1 : 0), number(r.dims.rank);
      for (int i = 0; i < r.dims.rank; ++i) number(r.dims[i]);
      number(static_cast<std::int64_t>(r.bytes.size()));
      put(r.bytes.data(), r.bytes.size());
    }
    const std::span<const std::byte> all = out.own(std::move(bytes));
    out.files.push_back({std::string(extension), {all}});
    return out;
  }
  gradus::decoded decode(gradus::checkpoint_files& files) const {
    gradus::decoded out;
    std::span<const std::byte> bytes;
    if (const auto p = files.open(extension, bytes)) {
      out.kind = gradus::status_of_errno(p.error), out.problem = gradus::describe(p);
      return out;
    }
    std::size_t at = 0;
    const auto take = [&](std::int64_t n) {
      if (n < 0 || static_cast<std::uint64_t>(n) > bytes.size() - at) {
        out.problem = "the file ends too early";
        return std::span<const std::byte>{};
      }
      at += static_cast<std::size_t>(n);
      return bytes.subspan(at - static_cast<std::size_t>(n), static_cast<std::size_t>(n));
    };
    const auto number = [&] {
      std::int64_t n = 0;
      if (const auto b = take(sizeof n); !b.empty()) std::memcpy(&n, b.data(), sizeof n);
      return n;
    };
    out.content.step = number();
    for (std::int64_t left = number(); left > 0 && out.ok(); --left) {
      gradus::record r;
      const auto text = take(number());
      r.name.assign(reinterpret_cast<const char*>(text.data()), text.size());
      r.type = static_cast<gradus::dtype>(number());
      r.blob = number() != 0;
      for (std::int64_t rank = number(); rank > 0; --rank) r.dims.push(number());
      r.bytes = take(number());
      out.content.records.push_back(std::move(r));
    }
    if (!out.ok()) out.content.records.clear();
    return out;
  }
};

struct heard {
  using policy_for = gradus::kind::log_sink;
  std::vector<std::string>* lines;
  std::int64_t* steps;
  void line(std::string_view s) { lines->emplace_back(s); }
  void step(const gradus::progress_report& r, bool) { *steps = r.step; }
};

// The operating system's files, counted.
struct counted_files {
  using policy_for = gradus::kind::file_system;
  using handle = int;
  int* opened;
  gradus::posix files = {};

  int create(const std::string& p, int& h) const { return ++*opened, files.create(p, h); }
  int open_append(const std::string& p, int& h) const { return ++*opened, files.open_append(p, h); }
  int open_read(const std::string& p, int& h, std::uint64_t& n) const { return ++*opened, files.open_read(p, h, n); }
  int write(int h, std::span<const std::byte> b, std::size_t& n) const { return files.write(h, b, n); }
  int read(int h, std::span<std::byte> b, std::size_t& n) const { return files.read(h, b, n); }
  int sync(int h) const { return files.sync(h); }
  int close(int h) const { return files.close(h); }
  int rename(const std::string& a, const std::string& b) const { return files.rename(a, b); }
  int remove(const std::string& p) const { return files.remove(p); }
  int exists(const std::string& p) const { return files.exists(p); }
  int make_directory(const std::string& p) const { return files.make_directory(p); }
  int sync_directory(const std::string& p) const { return files.sync_directory(p); }
  int list(const std::string& p, std::vector<std::string>& names) const { return files.list(p, names); }
};

struct stopped_clock {
  using policy_for = gradus::kind::clock;
  double now() const { return 1.7e9; }
  double elapsed() const { return 0; }
};

// x and y = 3 x - 1, for ever.
class line_points : public gradus::composable<line_points> {
public:
  const gradus::components& element_spec() const { return spec_; }
  std::int64_t pull(std::span<const gradus::tensor_view> out, std::int64_t first, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i, ++next_) {
      if (out.empty()) continue;
      const float x = static_cast<float>(next_ % 7) / 7;
      reinterpret_cast<float*>(out[0].mutable_data())[first + i] = x;
      reinterpret_cast<float*>(out[1].mutable_data())[first + i] = 3 * x - 1;
    }
    return n;
  }
  void rewind() { next_ = 0; }
  void define(std::string& to) const { to += "line_points"; }
  void write(gradus::position_writer& to) const { to.number(next_); }
  void read(gradus::position_reader& from) {
    const auto next = from.number(0, std::int64_t{1} << 40, "the next point");
    if (from.apply()) next_ = next;
  }

private:
  gradus::components spec_{{"x", gradus::float32, {1}}, {"y", gradus::float32, {1}}};
  std::int64_t next_ = 0;
};

// Every element twice.
template <gradus::dataset Source>
class twice : public gradus::composable<twice<Source>> {
public:
  explicit twice(Source source) : source_(std::move(source)) {}
  const gradus::components& element_spec() const { return source_.element_spec(); }
  std::int64_t pull(std::span<const gradus::tensor_view> out, std::int64_t first, std::int64_t n) {
    const gradus::tensor_view row[] = {gradus::tensor_view(std::span<float>(values_, 1), {1, 1}),
                                       gradus::tensor_view(std::span<float>(values_ + 1, 1), {1, 1})};
    std::int64_t done = 0;
    for (; done < n; ++done) {
      if (kept_ == 0 && source_.pull(std::span<const gradus::tensor_view>(row), 0, 1) == 0) break;
      kept_ ^= 1;
      for (std::size_t c = 0; c < out.size(); ++c)
        reinterpret_cast<float*>(out[c].mutable_data())[first + done] = values_[c];
    }
    return done;
  }
  void rewind() { source_.rewind(), kept_ = 0; }
  void define(std::string& to) const {
    source_.define(to);
    to += ".twice";
  }
  void write(gradus::position_writer& to) const {
    to.number(kept_);
    for (const float& v : values_) to.bytes(std::as_bytes(std::span(&v, 1)));
    source_.write(to);
  }
  void read(gradus::position_reader& from) {
    const auto kept = from.number(0, 1, "what is given once more");
    float values[2];
    for (float& v : values) {
      const auto b = from.bytes(sizeof v, "a value");
      std::memcpy(&v, b.data(), sizeof v);
    }
    source_.read(from);
    if (from.apply()) kept_ = kept, values_[0] = values[0], values_[1] = values[1];
  }

private:
  Source source_;
  std::int64_t kept_ = 0;
  float values_[2] = {};
};

constexpr auto line = [](gradus::graph& g) {
  using namespace gradus;
  const auto x = g.placeholder("x", {batch, 1}), y = g.placeholder("y", {batch, 1});
  const auto off = dense(x, {.units = 1, .name = "line"}) - y;
  const auto loss = reduce_mean(off * off);
  return model_spec{.loss = loss, .metrics = {{"off", metrics::mean(off * off)}}, .predictions = {}};
};

struct outcome {
  std::vector<std::byte> weights;
  std::vector<std::string> lines;
  std::int64_t steps = 0;
  int opened = 0;
};

outcome train(const std::string& dir, std::initializer_list<std::int64_t> stops) {
  outcome out;
  for (const std::int64_t last : stops) {
    auto trainer = gradus::make_trainer<line>(
        steady{}, limping{.rate = 0.3}, plain_file{}, heard{&out.lines, &out.steps}, counted_files{&out.opened},
        stopped_clock{},
        gradus::run_config{
            .model_dir = dir, .tf_random_seed = 3, .save_summary_steps = 0, .save_checkpoints_steps = 4});
    trainer.train(twice(line_points{}).batch(5), {.max_steps = last});
    out.weights.clear();
    const auto list = trainer.state();
    for (const auto& e : list.entries())
      if (e.dynamic == nullptr) out.weights.insert(out.weights.end(), e.bytes.begin(), e.bytes.end());
  }
  return out;
}

}  // namespace

int main() {
  const auto dir = std::filesystem::temp_directory_path() / ("gradus_own_parts_" + std::to_string(::getpid()));
  int wrong = 0;
  const auto expect = [&](bool right, const char* what) {
    if (!right) std::printf("not so: %s\n", what), ++wrong;
  };
  try {
    const auto whole = train(dir / "whole", {30}), parts = train(dir / "parts", {7, 18, 30});
    expect(!whole.weights.empty() && whole.weights == parts.weights, "a run in three parts ends with the same bits");
    expect(whole.steps == 30 && parts.steps == 30, "the log sink sees every step");
    expect(whole.opened > 5 && parts.opened > whole.opened, "every file is opened by the program's file system");
    bool restored = false;
    for (const auto& l : parts.lines) restored = restored || l.find("restored step 18") != l.npos;
    expect(restored, "the log sink hears what was restored");
    expect(std::filesystem::exists(dir / "parts" / "model-30.plain"), "the codec names the files");
  } catch (const gradus::error& e) {
    std::printf("%s\n", e.what());
    ++wrong;
  }
  std::filesystem::remove_all(dir);
  if (wrong == 0) std::printf("%d.%d.%d\n", GRADUS_VERSION_MAJOR, GRADUS_VERSION_MINOR, GRADUS_VERSION_PATCH);
  return wrong;
}
