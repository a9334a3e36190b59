// one thread: what is refused is refused before threads begin
// costs: 300
// What a training run refuses while it runs, read to the letter: what went wrong, where, what to do; and what is left
// afterwards.
#include <gradus/codec/cereal.hpp>
#include <gradus/gradus.hpp>
#include <gradus/input/map.hpp>
#include <gradus/testing/faulty_files.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <functional>
#include <limits>

#include "../train/run_files.hpp"

using namespace gradus;
using gradus::testing::faulty_files;
using gradus::testing::temp_dir;

namespace {

struct refusal {
  status kind{};
  std::string text;
  bool says(std::string_view words) const { return text.find(words) != std::string::npos; }
};
refusal refused(const std::function<void()>& f) {
  try {
    f();
  } catch (const error& e) {
    return {e.kind(), e.what()};
  }
  return {status::unknown, "nothing was refused"};
}
#define CHECK_SAYS(r, words) CHECK_MESSAGE((r).says(words), "\n  found:    ", (r).text, "\n  expected: ", words)

// y = x kernel + bias, squared error.
constexpr model_spec line(graph& g) {
  auto x = g.placeholder("x", {batch, 2});
  auto y = g.placeholder("y", {batch, 1});
  return {.loss = reduce_mean(square(dense(x, {.units = 1, .name = "line", .kernel_initializer = ones}) - y))};
}
// Three classes.
constexpr model_spec classes(graph& g) {
  auto x = g.placeholder("x", {batch, 2});
  auto label = g.placeholder("label", {batch}, int32);
  auto logits = dense(x, {.units = 3, .name = "logits"});
  return {.loss = reduce_mean(sparse_softmax_cross_entropy(logits, label)),
          .metrics = {{"accuracy", accuracy(logits, label)}}};
}

struct numbers {
  std::vector<float> x, y;
  std::vector<std::int32_t> label;
  explicit numbers(int n = 24) {
    for (int i = 0; i < n; ++i) {
      x.push_back(static_cast<float>(i % 5) / 5), x.push_back(static_cast<float>(i % 7) / 7);
      y.push_back(x[x.size() - 2] - 2 * x.back()), label.push_back(i % 3);
    }
  }
  memory_dataset for_line() const { return from_spans("x", x, extents{2}, "y", y, extents{1}); }
  memory_dataset for_classes() const { return from_spans("x", x, extents{2}, "label", label); }
};

auto trainer_of(model_spec (*build)(graph&), const faulty_files& files, double rate = 0.1, double save_steps = 4) {
  return make_trainer(build, momentum{.rate = rate}, files,
                      run_config{.model_dir = "run", .save_summary_steps = 1, .save_checkpoints_steps = save_steps});
}
// The step of the checkpoint that another process finds.
std::int64_t newest_step(const faulty_files& files) {
  const numbers data;
  return trainer_of(line, files).evaluate(data.for_line().batch(2)).global_step();
}

}  // namespace

TEST_CASE("a loss that is NaN or infinite stops the run: which tensor, which step, which checkpoint is left") {
  numbers data;
  faulty_files files;
  data.x[2 * 12] = std::numeric_limits<float>::quiet_NaN();  // batches of 2: in step 7
  auto trainer = trainer_of(line, files);
  auto r = refused([&] { trainer.train(data.for_line().batch(2), {.max_steps = 12}); });
  CHECK(r.kind == status::invalid_argument);
  CHECK(r.text ==
        "the model diverged: \"loss\" is NaN at step 7; lower the learning rate, clip gradients, or look for NaN in "
        "the data. The checkpoint of "
        "step 4 is kept");
  CHECK(newest_step(files) == 4);
  // The trainer itself can go on from there too, once the cause is gone.
  data.x[2 * 12] = 0;
  trainer.train(data.for_line().batch(2), {.max_steps = 12});
  CHECK(trainer.global_step() == 12);
  faulty_files other;
  trainer_of(line, other).train(data.for_line().batch(2), {.max_steps = 12});
  CHECK(run_files::difference(run_files::newest_checkpoint(files, "run"), run_files::newest_checkpoint(other, "run"))
            .empty());

  faulty_files far;  // a rate so high that the loss overflows
  r = refused([&] { trainer_of(line, far, 1e9).train(data.for_line().repeat().batch(2), {.max_steps = 100}); });
  CHECK(r.kind == status::invalid_argument);
  CHECK_SAYS(r, "the model diverged: \"loss\" is infinite at step ");
  CHECK_SAYS(r, "The checkpoint of step 0 is kept");

  auto unsaved = make_trainer(line, momentum{.rate = 1e9}, far, run_config{});
  r = refused([&] { unsaved.train(data.for_line().repeat().batch(2), {.max_steps = 100}); });
  CHECK_SAYS(r, "lower the learning rate, clip gradients, or look for NaN in the data. There is no checkpoint");
}

TEST_CASE("after a resume the checkpoint that was read is the one that is kept") {
  numbers data;
  faulty_files files;
  trainer_of(line, files).train(data.for_line().batch(2), {.max_steps = 5});
  data.x[2 * 10] = std::numeric_limits<float>::infinity();  // in step 6
  const auto r = refused([&] { trainer_of(line, files).train(data.for_line().batch(2), {.max_steps = 12}); });
  CHECK_SAYS(r, "at step 6; ");
  CHECK_SAYS(r, "The checkpoint of step 5 is kept");
}

TEST_CASE("parameters that diverge under a finite loss never reach a checkpoint") {
  // The square root is 0 at 0, its slope is infinite: the loss of step 1 is fine, the parameters after it are not.
  const auto root = [](graph& g) {
    auto x = g.placeholder("x", {batch, 2});
    return model_spec{.loss = reduce_mean(sqrt(
                          dense(x, {.units = 1, .name = "root", .use_bias = false, .kernel_initializer = zeros})))};
  };
  const numbers data;
  faulty_files files;
  auto trainer = make_trainer(root, gradient_descent{.rate = 0.1}, files,
                              run_config{.model_dir = "run", .save_checkpoints_steps = 1, .keep_checkpoint_max = 1});
  const auto r = refused([&] { trainer.train(data.for_line().repeat().batch(24), {.max_steps = 5}); });
  CHECK(r.kind == status::invalid_argument);
  CHECK_SAYS(r, "the model diverged: \"root/kernel\" is ");
  CHECK_SAYS(r, " at step 1; ");
  CHECK_SAYS(r, "The checkpoint of step 0 is kept");
  CHECK(files.holds("run/model-0.ckpt"));
  CHECK(!files.holds("run/model-1.ckpt"));
}

TEST_CASE("a label outside of the classes") {
  numbers data;
  data.label[9] = 3;
  for (const bool compiled : {true, false}) {
    CAPTURE(compiled);
    refusal r;
    if (compiled) {
      auto trainer = make_trainer<classes>(adam{}, threads{2});
      r = refused([&] { trainer.train(data.for_classes().batch(8), {.max_steps = 3}); });
      CHECK(trainer.global_step() == 1);
    } else {
      auto trainer = make_trainer(classes, adam{});
      r = refused([&] { trainer.train(data.for_classes().batch(8), {.max_steps = 3}); });
      CHECK(trainer.global_step() == 1);
    }
    CHECK(r.kind == status::invalid_argument);
    CHECK_SAYS(r, "sparse_softmax_cross_entropy: label 3 of row 1");
    CHECK_SAYS(r, "[0, 3)");
  }
}

TEST_CASE("data that does not fit the placeholders") {
  const numbers data;
  faulty_files files;
  const auto fed = [&](auto&& d) {
    auto trainer = make_trainer(line, momentum{.rate = 0.1}, files, run_config{});
    return refused([&] { trainer.train(d.batch(2), {.max_steps = 1}); });
  };
  auto r = fed(from_spans("x", data.x, extents{2}));
  CHECK(r.kind == status::invalid_argument);
  CHECK(r.text == "placeholder \"y\" is not fed: the dataset has x float32 [2]; give one of these its name");
  r = fed(from_spans("x", data.x, extents{4}, "y", std::span(data.y).first(12), extents{1}));
  CHECK(r.text ==
        "placeholder \"x\" is float32 [batch, 2], but the dataset's \"x\" is float32 [4] per example; make one as the "
        "other");
  r = fed(from_spans("x", data.x, extents{2}, "y", data.label, extents{1}));
  CHECK(r.text ==
        "placeholder \"y\" is float32 [batch, 1], but the dataset's \"y\" is int32 [1] per example; make one as the "
        "other");
}

TEST_CASE("the learning rate has one owner") {
  auto r = refused([] { make_trainer(line, adam{.rate = 0.1}, exponential_decay{.decay_steps = 100}); });
  CHECK(r.kind == status::invalid_argument);
  CHECK_SAYS(r, "the learning rate has two owners: Adam's `.rate` and the schedule among the policies");
  r = refused([] { make_trainer(line, momentum{}); });
  CHECK_SAYS(r, "the learning rate has no owner: Momentum has no default");
}

TEST_CASE("a damaged checkpoint: every truncation and a damage anywhere are noticed, and the intact one is named") {
  const numbers data;
  faulty_files files;
  trainer_of(line, files).train(data.for_line().repeat().batch(2), {.max_steps = 9});
  const auto whole = files.bytes("run/model-9.ckpt");
  const auto resume = [&] {
    return refused([&] { trainer_of(line, files).train(data.for_line().repeat().batch(2), {.max_steps = 12}); });
  };
  const auto check = [&](const refusal& r, status kind = status::data_loss) {
    CHECK(r.kind == kind);
    CHECK_SAYS(r, "checkpoint \"run/model-9.ckpt\" can");
  };
  for (std::size_t n = 0; n < whole.size(); n += 1 + n / 16) {
    CAPTURE(n);
    files.bytes("run/model-9.ckpt").assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    const auto r = resume();
    check(r);
    CHECK_SAYS(r,
               "The newest intact one beside it is \"run/model-8.ckpt\" (step 8): restore it by its path, or set "
               "restore_options::fallback (restore_fallback of a run_config and of the options of supervisors, "
               "sessions and predictors). Nothing was changed.");
    if (n > 100) CHECK_SAYS(r, "it is truncated");
  }
  for (std::size_t n = 0; n < whole.size(); n += 7) {
    CAPTURE(n);
    auto& bytes = files.bytes("run/model-9.ckpt") = whole;
    bytes[n] ^= std::byte{0x10};
    const auto r = resume();
    CHECK((r.kind == status::data_loss || r.kind == status::failed_precondition));  // a newer version, another codec
    CHECK_SAYS(r, "checkpoint \"run/model-9.ckpt\" cannot be re");
  }
  auto& bytes = files.bytes("run/model-9.ckpt") = whole;
  bytes[whole.size() - 70] ^= std::byte{1};
  CHECK_SAYS(resume(), "the checksum of \"");
  bytes = whole;
  bytes.push_back({});
  CHECK_SAYS(resume(), "bytes after its end");

  bytes.assign(300, std::byte{'x'});  // something else altogether
  CHECK_SAYS(resume(), "cannot be restored: it does not begin with");

  std::vector<std::byte> state;
  files.bytes("run/checkpoint").assign(20, std::byte{0xff});
  CHECK_SAYS(resume(), "run/checkpoint\"");
}

TEST_CASE("a checkpoint of another codec") {
  const numbers data;
  faulty_files files;
  make_trainer(line, momentum{.rate = 0.1}, cereal_binary{}, files, run_config{.model_dir = "run"})
      .train(data.for_line().repeat().batch(2), {.max_steps = 3});
  const auto r = refused([&] { trainer_of(line, files).train(data.for_line().repeat().batch(2), {.max_steps = 5}); });
  CHECK(r.kind == status::failed_precondition);
  CHECK_SAYS(r, "it was written by the codec \"cereal_binary\", and is read here by \"flat_binary\"");
}

TEST_CASE("a checkpoint of another model: all that is missing, too much, or of another shape, in one message") {
  const numbers data;
  faulty_files files;
  trainer_of(line, files).train(data.for_line().repeat().batch(2), {.max_steps = 3});
  const auto before = files.bytes("run/model-3.ckpt");
  const auto other = [](graph& g) -> model_spec {
    auto x = g.placeholder("x", {batch, 2});
    auto y = g.placeholder("y", {batch, 1});
    auto h = dense(x, {.units = 3, .name = "line"});
    return {.loss = reduce_mean(square(dense(h, {.units = 1, .name = "more", .use_bias = false}) - y))};
  };
  const auto train = [&](auto& trainer) {
    return refused([&] { trainer.train(data.for_line().repeat().batch(2), {.max_steps = 5}); });
  };
  auto trainer = trainer_of(other, files);
  auto r = train(trainer);
  CHECK(r.kind == status::not_found);
  CHECK_SAYS(r, "checkpoint \"run/model-3.ckpt\" does not fit this model:");
  CHECK_SAYS(r, "missing in the file: \"more/kernel\", \"more/kernel/Momentum\"");
  CHECK_SAYS(r, "of another type or shape: \"line/kernel\" (float32[2, 3] here, float32[2, 1] in the file), ");
  CHECK_SAYS(r, "\"line/bias\" (float32[3] here, float32[1] in the file)");
  CHECK_SAYS(
      r,
      "Restore it with the model, rule and policies that wrote it, or start in another directory, with a warm start "
      "if values of this one are wanted; to read only what this "
      "model has, give the saver's restore {.ignore_extra = true}. Nothing was "
      "changed.");
  CHECK(files.bytes("run/model-3.ckpt") == before);

  const auto less = [](graph& g) -> model_spec {
    auto x = g.placeholder("x", {batch, 2});
    auto y = g.placeholder("y", {batch, 1});
    return {.loss = reduce_mean(
                square(dense(x, {.units = 1, .name = "line", .use_bias = false, .kernel_initializer = ones}) - y))};
  };
  auto smaller = trainer_of(less, files);
  r = train(smaller);
  CHECK(r.kind == status::invalid_argument);
  CHECK_SAYS(r, "in the file, but not in this model: \"line/bias\", \"line/bias/Momentum\"");

  auto another_rule = make_trainer(line, adam{}, files, run_config{.model_dir = "run"});
  r = train(another_rule);
  CHECK_SAYS(r, "\"line/kernel/Adam\"");
  CHECK_SAYS(r, "\"beta1_power\"");
  CHECK_SAYS(r, "\"line/kernel/Momentum\"");
}

TEST_CASE("the same model on other data: the position does not fit, and nothing was restored") {
  const numbers data, more(30);
  faulty_files files;
  trainer_of(line, files).train(data.for_line().repeat().batch(2), {.max_steps = 3});
  auto trainer = trainer_of(line, files);
  const auto r = refused([&] { trainer.train(more.for_line().repeat().batch(2), {.max_steps = 5}); });
  CHECK(r.kind == status::data_loss);
  CHECK_SAYS(r, "the saved position is one in the input \"");
  CHECK_SAYS(r, "memory(24; ");
  CHECK_SAYS(r, "memory(30; ");
  CHECK(trainer.global_step() == 0);
}

TEST_CASE("any file operation fails, once or for good: it is said, and what was saved before is there") {
  const numbers data;
  const auto train = [&](auto& trainer, auto& input) { trainer.train(input, {.max_steps = 9}); };
  faulty_files healthy;
  {
    auto trainer = trainer_of(line, healthy);
    auto input = data.for_line().shuffle(8, 1).repeat().batch(2);
    train(trainer, input);
  }
  const auto expected = run_files::newest_checkpoint(healthy, "run");
  const std::int64_t operations = healthy.operations();
  int refusals = 0;
  for (const bool persistent : {false, true})
    for (const int e : {ENOSPC, EACCES, EIO})
      for (std::int64_t n = 0; n < operations; ++n) {
        CAPTURE(persistent);
        CAPTURE(e);
        CAPTURE(n);
        faulty_files files;
        auto trainer = trainer_of(line, files);
        auto input = data.for_line().shuffle(8, 1).repeat().batch(2);
        files.plan({.at = n, .error = e, .persistent = persistent});
        const auto r = refused([&] { train(trainer, input); });
        files.plan({});
        CHECK(files.open_handles() == 0);
        if (r.kind != status::unknown) {
          ++refusals;
          CHECK(r.kind == status_of_errno(e));
          CHECK_SAYS(r, advice_of_errno(e));
          CHECK((r.says("\"run") || r.says("\".\"")));  // which file or directory
          for (const auto& path : files.files()) CHECK_MESSAGE((persistent || !is_temporary(path)), path);
        }
        // The cause is gone: the trainer goes on, or another process does, and nothing was lost on the way.
        if (n % 2 == 0) {
          train(trainer, input);
        } else {
          auto fresh = trainer_of(line, files);
          auto again = data.for_line().shuffle(8, 1).repeat().batch(2);
          train(fresh, again);
        }
        CHECK(run_files::difference(run_files::newest_checkpoint(files, "run"), expected) == "");
      }
  CHECK(refusals > 4 * operations);
}

TEST_CASE("a directory that cannot be written, a disk that is full: what, where, what to do") {
  const numbers data;
  const auto train = [&](const faulty_files& files) {
    return refused([&] { trainer_of(line, files).train(data.for_line().repeat().batch(2), {.max_steps = 9}); });
  };
  faulty_files counted;
  std::int64_t made = -1;
  for (std::int64_t n = 0; made < 0; ++n) {  // the operation that makes the directory
    faulty_files files;
    files.plan({.at = n, .error = EACCES});
    if (train(files).says("cannot create the directory")) made = n;
  }
  faulty_files files;
  files.plan({.at = made, .error = EACCES, .persistent = true});
  auto r = train(files);
  CHECK(r.kind == status::permission_denied);
  CHECK(r.text ==
        "cannot create the directory \"run\": Permission denied (check the directory's owner and permissions, or "
        "choose another directory)");

  train(counted);
  std::string full;
  for (std::int64_t n = counted.operations() - 1; n >= 0 && full.empty(); --n) {  // in the middle of the last save
    faulty_files disk;
    disk.plan({.at = n, .error = ENOSPC, .persistent = true});
    const auto found = train(disk);
    if (!found.says("cannot write \"run/model-9.ckpt")) continue;
    full = found.text;
    CHECK(found.kind == status::resource_exhausted);
    CHECK(!disk.holds("run/model-9.ckpt"));
    disk.plan({});
    CHECK(newest_step(disk) == 8);
  }
  const auto number = full.find("gradus-tmp-") + 11;
  full.erase(number, full.find('"', number) - number);  // it is drawn at random
  CHECK(full ==
        "step 9 is not saved: cannot write \"run/model-9.ckpt.gradus-tmp-\": No space left on device (the disk is "
        "full: free some space, keep fewer files, or choose another directory). The checkpoints before it are as they "
        "were.");
}

TEST_CASE("real files: a path through a file, a directory of nobody's, a limit on the size of files") {
  const numbers data;
  const temp_dir dir;
  const auto train = [&](const std::string& model_dir, std::int64_t steps) {
    return refused([&] {
      make_trainer(line, momentum{.rate = 0.1}, run_config{.model_dir = model_dir, .save_checkpoints_steps = 2})
          .train(data.for_line().repeat().batch(2), {.max_steps = steps});
    });
  };
  publish(posix{}, dir / "file", "in the way");
  auto r = train(dir / "file/run", 5);
  CHECK(r.kind == status::not_found);
  CHECK_SAYS(r, "a part of the path is a file where a directory is needed");

  if (::geteuid() != 0) {  // root writes everywhere
    make_directories(posix{}, dir / "locked");
    ::chmod((dir / "locked").c_str(), 0500);
    r = train(dir / "locked", 5);
    ::chmod((dir / "locked").c_str(), 0700);
    CHECK(r.kind == status::permission_denied);
    CHECK_SAYS(r, dir / "locked");
  }

  CHECK(train(dir / "run", 3).text == "nothing was refused");
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 200;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  r = train(dir / "run", 5);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(r.kind == status::resource_exhausted);
  CHECK_SAYS(r, "the file is larger than is allowed here: raise the limit");
  CHECK(run_files::newest_checkpoint(posix{}, dir / "run").step == 3);
  CHECK(train(dir / "run", 5).text == "nothing was refused");
  CHECK(run_files::newest_checkpoint(posix{}, dir / "run").step == 5);
}

TEST_CASE("two processes that train into one directory: the second is refused, and may evaluate") {
  const numbers data;
  const temp_dir dir;
  const auto trainer_here = [&] {
    return make_trainer(line, momentum{.rate = 0.1}, run_config{.model_dir = dir / "run", .save_checkpoints_steps = 2});
  };
  // 'r' if a process that wants to train is refused, 't' if it trains, 'e' if it can evaluate after that.
  const auto another_process = [&] {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      auto second = trainer_here();
      char said[2] = {};
      said[0] = refused([&] {
                  second.train(data.for_line().repeat().batch(2), {.steps = 1});
                }).says(text("expected to be the only process that writes into \"", dir / "run", "\""))
                    ? 'r'
                    : 't';
      said[1] = refused([&] { second.evaluate(data.for_line().batch(2)); }).kind == status::unknown ? 'e' : 'n';
      ::_exit(::write(ends[1], said, 2) == 2 ? 0 : 1);
    }
    char said[2] = {};
    CHECK(::read(ends[0], said, 2) == 2);
    ::waitpid(child, nullptr, 0);
    ::close(ends[0]), ::close(ends[1]);
    return std::string(said, 2);
  };
  std::string meanwhile;
  auto first = trainer_here();
  int batches = 0;
  first.train(data.for_line().repeat().batch(2).map([&](datum&) {
    if (++batches == 4) meanwhile = another_process();
  }),
              {.steps = 6});
  CHECK(meanwhile == "re");
  CHECK(another_process() == "te");
}

TEST_CASE("malformed IDX files reach the user as what they are, whatever trains on them") {
  using bytes = std::vector<std::uint8_t>;
  const temp_dir dir;
  const auto put = [&](const std::string& name, const bytes& b) {
    publish(posix{}, dir / name, std::string_view(reinterpret_cast<const char*>(b.data()), b.size()));
  };
  const bytes images{0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 10, 20, 30, 40},
      labels{0, 0, 8, 1, 0, 0, 0, 2, 0, 1};
  const auto model = [](graph& g) -> model_spec {
    auto image = g.placeholder("image", {batch, 2});
    auto label = g.placeholder("label", {batch}, int32);
    return {.loss = reduce_mean(sparse_softmax_cross_entropy(dense(image, {.units = 2}), label))};
  };
  const auto train = [&](const bytes& i, const bytes& l, const char* ending = "") {
    ::unlink((dir / "train-images-idx3-ubyte").c_str());
    put(text("train-images-idx3-ubyte", ending), i);
    put("train-labels-idx1-ubyte", l);
    return refused([&] { make_trainer(model, adam{}).train(idx(dir / "train").repeat().batch(2), {.steps = 2}); });
  };
  const auto with = [](bytes b, std::size_t at, std::uint8_t value) {
    b[at] = value;
    return b;
  };
  CHECK(train(images, labels).text == "nothing was refused");

  auto r = train(with(images, 7, 3), labels);
  CHECK(r.kind == status::data_loss);
  CHECK_SAYS(r, "its extents [3, 1, 2] need 6 bytes of values after the header, the file has 4; it is truncated");
  r = train(with(images, 4, 0x7f), labels);  // 2 G images in 20 bytes
  CHECK_SAYS(r, "its extents [2130706434, 1, 2] need 4261412868 bytes");
  bytes huge = images;
  for (std::size_t i = 4; i < 16; ++i) huge[i] = 0xff;
  CHECK_SAYS(train(huge, labels), "are more than any file can hold");
  r = train(with(images, 7, 1), labels);
  CHECK_SAYS(r, "the file has 4; it is damaged or its extents lie");
  r = train(with(images, 0, 'P'), labels);
  CHECK(r.kind == status::data_loss);
  CHECK_SAYS(r, "train-images-idx3-ubyte: expected an IDX file");
  CHECK_SAYS(r, "found the bytes 50 00 08 03; is this another kind of file?");
  r = train({0, 0, 8}, labels);
  CHECK_SAYS(r, "which begins with 4 bytes of magic; found 3 bytes");
  r = train(labels, labels);
  CHECK_SAYS(r, "expected images, uint8 [n, rows, columns] (magic 00 00 08 03), found rank 1");
  r = train(images, with(bytes{0, 0, 8, 1, 0, 0, 0, 3, 0, 1, 0}, 8, 0));
  CHECK_SAYS(r, "holds 2 images, ");
  CHECK_SAYS(r, "holds 3 labels; expected as many");
  r = train(images, with(labels, 9, 7));
  CHECK(r.kind == status::invalid_argument);
  CHECK_SAYS(r, "label 7 of row 1");

  // 64 zero bytes of values in a gzip stream of stored blocks, cut short at every length.
  bytes raw{0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 10, 20, 30, 40};
  bytes gz{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 20, 0, 0xeb, 0xff};
  gz.insert(gz.end(), raw.begin(), raw.end());
  const auto crc = [&] {  // the checksum of gzip, bit by bit
    std::uint32_t c = 0xffffffff;
    for (const auto b : raw) {
      c ^= b;
      for (int k = 0; k < 8; ++k) c = (c >> 1) ^ (0xedb88320u & (0u - (c & 1u)));
    }
    return ~c;
  }();
  for (int k = 0; k < 4; ++k) gz.push_back(static_cast<std::uint8_t>(crc >> 8 * k));
  gz.insert(gz.end(), {20, 0, 0, 0});
  CHECK(train(gz, labels, ".gz").text == "nothing was refused");
  for (std::size_t n = 2; n < gz.size(); ++n) {
    CAPTURE(n);
    r = train({gz.begin(), gz.begin() + static_cast<std::ptrdiff_t>(n)}, labels, ".gz");
    CHECK(r.kind == status::data_loss);
    CHECK_SAYS(r, "train-images-idx3-ubyte.gz");
  }
}
