// Online logistic regression by Ftrl from a file, beside Vowpal Wabbit: read, hash, predict, learn, and the progressive
// loss, which is the mean of each example's loss before its step. Both programs are whole processes that take turns on
// one processor, and both step after every example.
//
//   bench_vowpal_wabbit [folder [examples [turns]]]      vw_data, 300000, 11; $VW names the command; without it, ours
//   bench_vowpal_wabbit learn libsvm|criteo FILE [updater|trainer]       one training of the file
//
// The files are drawn by a seed, with the same content for both. "libsvm" has 32 to 48 of 2^20 features with values,
// whose popularity falls like a power, and labels of a logistic model with a sparse weight vector. "criteo" has lines
// of Criteo's click logs, a label, 13 integers and 26 categories, whose logarithms and names Vowpal Wabbit's file has;
// ids are hashes in a table of 2^20 weights, which collide in other places.
#include <gradus/base/random.hpp>
#include <gradus/input/criteo.hpp>
#include <gradus/input/libsvm.hpp>
#include <gradus/input/map.hpp>
#include <gradus/ops/embedding.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/train/trainer.hpp>
#include <gradus/update/rules/ftrl.hpp>

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace {

using namespace gradus;

constexpr int bits = 20, table_size = 1 << bits, most = 48;
constexpr int integers = 13, categories = 26, buckets = (table_size - integers) / categories;
const ftrl rule{
    .rate = 0.1, .initial_accumulator_value = 0, .l1 = 0.01, .l2 = 0.01, .beta = 1, .l2_convention = ftrl_l2::mcmahan};
const char* const options = " -b 20 --ftrl --ftrl_alpha 0.1 --ftrl_beta 1 --l1 0.01 --l2 0.01 --loss_function logistic";

// ---- ours, with an updater: the forward pass is a loop of the program
struct progress {
  std::int64_t examples = 0;
  double loss = 0;
};

class regression {
public:
  regression() {
    updater_.track("w", tensor_view{float32, {table_size, 1}, memory_.data()});
    updater_.reserve_rows(most);
  }
  // An example's weights come from memory while the one before it is computed; the step itself fetches the slots.
  void expect(std::span<const std::int64_t> ids) {
    for (const std::int64_t id : ids) __builtin_prefetch(weights_ + id, 1);
  }
  void learn(std::span<const std::int64_t> ids, std::span<const float> values, bool label) {
    float logit = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) logit += weights_[static_cast<std::size_t>(ids[i])] * values[i];
    const float error = 1 / (1 + std::exp(-logit)) - (label ? 1.0F : 0.0F);
    gradient_.resize(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) gradient_[i] = error * values[i];
    updater_.apply({{"w", indexed_slices{ids, gradient_}}});
    ++so_far.examples, so_far.loss += std::log1p(std::exp(label ? -logit : logit));
  }
  progress so_far;

private:
  aligned_buffer memory_{table_size * sizeof(float)};
  float* const weights_ = reinterpret_cast<float*>(memory_.data());
  std::vector<float> gradient_;
  decltype(updater{rule}) updater_{rule};
};

progress learn_libsvm(const std::string& file) {
  regression model;
  auto data = libsvm(file, {.features = table_size, .ragged = true});
  datum now, next;
  for (bool more = data.next(now); more; std::swap(now, next)) {
    more = data.next(next);
    if (more) model.expect(next.values<std::int64_t>("indices"));
    model.learn(now.values<std::int64_t>("indices"), now.values<float>("values"), now.value<float>("label") > 0);
  }
  return model.so_far;
}

// Rows of the table: one for each integer, then as many for each category as its hashes have. What is missing has none.
std::size_t features_of(std::span<const float> numbers, std::span<const std::int64_t> hashes, std::int64_t* ids,
                        float* values) {
  std::size_t n = 0;
  for (int i = 0; i < integers; ++i)
    if (const float x = numbers[static_cast<std::size_t>(i)]; x != 0) ids[n] = i, values[n++] = x;
  for (int i = 0; i < categories; ++i)
    if (const std::int64_t hash = hashes[static_cast<std::size_t>(i)]; hash >= 0)
      ids[n] = integers + std::int64_t{i} * buckets + hash, values[n++] = 1;
  return n;
}
criteo_dataset clicks(const std::string& file) {
  return criteo(file, {.log_transform = true, .hash_buckets = buckets});
}

progress learn_criteo(const std::string& file) {
  regression model;
  auto data = clicks(file);
  std::int64_t ids[integers + categories];
  float values[integers + categories];
  for (datum e; data.next(e);) {
    const auto n = features_of(e.values<float>("integers"), e.values<std::int64_t>("categories"), ids, values);
    model.expect({ids, n});
    model.learn({ids, n}, {values, n}, e.value<std::int32_t>("label") == 1);
  }
  return model.so_far;
}

// ---- ours, with a trainer: the model is a graph, a batch has one example
template <int Room>
constexpr auto linear = [](graph& g) {
  const auto ids = g.placeholder("ids", {batch, Room}, int64);
  const auto values = g.placeholder("values", {batch, Room});
  const auto label = g.placeholder("label", {batch});
  const auto logits = reshape(sparse_linear(ids, {.num_buckets = table_size, .weights = values}), {batch});
  return model_spec{
      .loss = reduce_mean(sigmoid_cross_entropy_with_logits(logits, label)), .metrics = {}, .predictions = {}};
};
struct progressive_loss {
  using policy_for = kind::hook;
  progress* sums;
  void after_run(run_context&, const run_values& step) { ++sums->examples, sums->loss += step.loss; }
};
template <int Room, class Data>
progress train(Data data) {
  progress sums;
  auto t = make_trainer<linear<Room>>(rule, progressive_loss{&sums}, silent{}, run_config{.save_summary_steps = 0});
  t.train(std::move(data), {.max_steps = std::int64_t{1} << 40});  // to the end of the data
  return sums;
}
components parts(int room) { return {{"ids", int64, {room}}, {"values", float32, {room}}, {"label", float32, {}}}; }
progress train_libsvm(const std::string& file) {
  return train<most>(libsvm(file, {.features = table_size, .ragged = true})
                         .map(parts(most),
                              [](const datum& from, datum& to) {
                                const auto ids = from.values<std::int64_t>("indices");
                                const auto values = from.values<float>("values");
                                const auto all = to.values<std::int64_t>("ids");
                                std::copy(ids.begin(), ids.end(), all.begin());
                                std::fill(all.begin() + static_cast<std::ptrdiff_t>(ids.size()), all.end(), -1);
                                std::copy(values.begin(), values.end(), to.values<float>("values").begin());
                                to.set<float>("label", from.value<float>("label") > 0 ? 1.0F : 0.0F);
                              })
                         .batch(1));
}
progress train_criteo(const std::string& file) {
  constexpr int room = integers + categories;
  return train<room>(clicks(file)
                         .map(parts(room),
                              [](const datum& from, datum& to) {
                                const auto ids = to.values<std::int64_t>("ids");
                                const auto n =
                                    features_of(from.values<float>("integers"), from.values<std::int64_t>("categories"),
                                                ids.data(), to.values<float>("values").data());
                                std::fill(ids.begin() + static_cast<std::ptrdiff_t>(n), ids.end(), -1);
                                to.set<float>("label", static_cast<float>(from.value<std::int32_t>("label")));
                              })
                         .batch(1));
}

// ---- the files
void add(std::string& to, auto number) {
  char digits[32];
  to.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}
void add(std::string& to, double number, int places) {
  char digits[32];
  to.append(digits, std::to_chars(digits, digits + sizeof digits, number, std::chars_format::fixed, places).ptr);
}
// The true weight of a feature: a quarter have one.
double weight_of(std::uint64_t feature) {
  const auto words = philox(11)({static_cast<std::uint32_t>(feature), static_cast<std::uint32_t>(feature >> 32), 0, 0});
  return words[0] % 4 == 0 ? 2 * uniform_double(words[1], words[2]) - 1 : 0;
}
// A number below `n`; small ones come often.
std::uint64_t popular(random_stream& roll, std::uint64_t n) {
  const double u = roll.uniform();
  return static_cast<std::uint64_t>(static_cast<double>(n) * u * u * u * u);
}
bool drawn_label(random_stream& roll, double logit) { return roll.uniform() < 1 / (1 + std::exp(-logit)); }

void draw_libsvm(random_stream& roll, std::string& ours, std::string& theirs) {
  std::vector<std::uint32_t> ids;
  for (auto n = most - roll.below(17); n > 0; --n)
    ids.push_back(static_cast<std::uint32_t>(popular(roll, table_size) * 0x9E3779B1U % table_size));
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  std::string line;
  double logit = 0;
  std::string one, zero;  // indices from 1, and from 0
  for (const auto id : ids) {
    const int ten_thousandths = 1 + static_cast<int>(roll.below(20000));
    logit += weight_of(id) * ten_thousandths / 1e4;
    std::string value;
    add(value, ten_thousandths / 1e4, 4);
    one += ' ', add(one, id + 1), one += ':', one += value;
    zero += ' ', add(zero, id), zero += ':', zero += value;
  }
  const bool label = drawn_label(roll, logit);
  ours += label ? "+1" : "-1", ours += one, ours += '\n';
  theirs += label ? "1 |" : "-1 |", theirs += zero, theirs += '\n';
}
void draw_criteo(random_stream& roll, std::string& ours, std::string& theirs) {
  constexpr std::string_view hex = "0123456789abcdef";
  double logit = -1;
  std::string fields, names = " |n";
  for (int i = 0; i < integers; ++i) {
    fields += '\t';
    if (roll.below(4) == 0) continue;
    const auto count = popular(roll, std::uint64_t{1} << (4 + i));
    const double x = std::log1p(static_cast<double>(count));
    add(fields, count);
    if (count == 0) continue;
    logit += 0.2 * (2 * uniform_double(philox(12)({static_cast<std::uint32_t>(i), 0, 0, 0})[0], 0) - 1) * x;
    names += ' ', add(names, i), names += ':', add(names, x, 6);
  }
  names += " |c";
  for (int i = 0; i < categories; ++i) {
    fields += '\t';
    if (roll.below(16) == 0) continue;
    const std::uint64_t word = popular(roll, std::uint64_t{1} << (3 + i % 13)) << 8 | static_cast<std::uint64_t>(i);
    logit += weight_of(word);
    const std::uint32_t hash = philox(13)({static_cast<std::uint32_t>(word), 0, 0, 0})[0];
    char digits[8];
    for (int k = 0; k < 8; ++k) digits[k] = hex[hash >> (28 - 4 * k) & 15];
    fields.append(digits, 8);
    names += ' ', names += static_cast<char>('a' + i), names.append(digits, 8);
  }
  const bool label = drawn_label(roll, logit);
  ours += label ? '1' : '0', ours += fields, ours += '\n';
  theirs += label ? "1" : "-1", theirs += names, theirs += '\n';
}
void draw(const std::string& path, long examples, void (*one)(random_stream&, std::string&, std::string&)) {
  random_stream roll{.seed = 7};
  std::ofstream ours(path), theirs(path + ".vw");
  std::string a, b;
  for (long i = 0; i < examples; ++i) {
    one(roll, a, b);
    if (a.size() > (1U << 20) || i + 1 == examples) ours << a, theirs << b, a.clear(), b.clear();
  }
  if (!ours.flush() || !theirs.flush()) raise(status::unavailable, "cannot write \"" + path + "\"");
}

// ---- processes
struct run {
  double wall = 0, processor = 0, loss = 0;
};
// Runs the command with what it prints in a file, and reads the number behind the last `before` in that.
run timed(const std::vector<std::string>& words, const std::string& output, std::string_view before) {
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child == 0) {
    const int out = ::open(output.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0666);
    ::dup2(out, 1), ::dup2(out, 2);
    std::vector<char*> arguments;
    for (const auto& w : words) arguments.push_back(const_cast<char*>(w.c_str()));
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  int ended = 0;
  rusage used{};
  ::wait4(child, &ended, 0, &used);
  run r;
  r.wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  r.processor = seconds(used.ru_utime) + seconds(used.ru_stime);
  std::ifstream in(output);
  const std::string all{std::istreambuf_iterator<char>(in), {}};
  const auto at = all.rfind(before);
  if (ended != 0 || at == all.npos) raise(status::failed_precondition, words[0] + " failed: " + all);
  r.loss = std::strtod(all.c_str() + at + before.size(), nullptr);
  return r;
}
double median(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}
struct turns {
  std::string name;
  std::vector<std::string> words;
  std::string_view before;
  std::vector<run> all = {};
  template <class F>
  double middle(F of) const {
    std::vector<double> values;
    for (const run& r : all) values.push_back(of(r));
    return median(values);
  }
};

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find(' ', at), text.size());
    if (end != at) all.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

void compare(const std::string& kind, const std::string& folder, long examples, int count) {
  const std::string file = folder + "/" + kind, output = folder + "/output";
  draw(file, examples, kind == "libsvm" ? draw_libsvm : draw_criteo);
  std::vector<turns> programs;
  for (const char* way : {"updater", "trainer"})
    programs.push_back({way, {"/proc/self/exe", "learn", kind, file, way}, "progressive loss "});
  if (const char* vw = std::getenv("VW"))
    programs.push_back({"Vowpal Wabbit", words_of(text(vw, options, " --noconstant -P 1000000000 -d ", file, ".vw")),
                        "average loss = "});
  for (int i = 0; i < count; ++i)
    for (turns& t : programs) t.all.push_back(timed(t.words, output, t.before));
  std::printf("%s, %ld examples, medians of %d turns\n", kind.c_str(), examples, count);
  const turns& last = programs.back();
  for (const turns& t : programs) {
    const double wall = t.middle([](const run& r) { return r.wall; });
    const double processor = t.middle([](const run& r) { return r.processor; });
    std::printf("  %-14s %8.0f examples/s, processor %.3f s, wall %.3f s, progressive loss %.6f", t.name.c_str(),
                static_cast<double>(examples) / processor, processor, wall, t.all[0].loss);
    std::vector<double> ratios;
    for (int i = 0; i < count; ++i) {
      const auto k = static_cast<std::size_t>(i);
      ratios.push_back(last.all[k].processor / t.all[k].processor);
    }
    if (&t != &last)
      std::printf(", of %s: %.2f (%.2f to %.2f) in processor time, loss %+.3f %%", last.name.c_str(), median(ratios),
                  *std::min_element(ratios.begin(), ratios.end()), *std::max_element(ratios.begin(), ratios.end()),
                  100 * (t.all[0].loss / last.all[0].loss - 1));
    std::printf("\n");
  }
}

int learn(const std::string& kind, const std::string& file, bool trains) {
  const progress p = kind == "libsvm" ? (trains ? train_libsvm(file) : learn_libsvm(file))
                                      : (trains ? train_criteo(file) : learn_criteo(file));
  std::printf("%lld examples, progressive loss %.6f\n", static_cast<long long>(p.examples),
              p.loss / static_cast<double>(p.examples));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 3 && std::string_view(argv[1]) == "learn")
    return learn(argv[2], argv[3], argc > 4 && std::string_view(argv[4]) == "trainer");
  const std::string folder = argc > 1 ? argv[1] : "vw_data";
  const long examples = argc > 2 ? std::atol(argv[2]) : 300000;
  const int count = argc > 3 ? std::atoi(argv[3]) : 11;
  ::mkdir(folder.c_str(), 0777);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(::sched_getcpu(), &one);
  ::sched_setaffinity(0, sizeof one, &one);
  for (const char* kind : {"libsvm", "criteo"}) compare(kind, folder, examples, count);
}
