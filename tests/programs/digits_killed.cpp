// compiled with: -O1
// The training run of examples/digits, on a disk at whose n-th operation inside a save the process dies.
//
//   digits_killed DATA MODEL_DIR STEPS BATCH TRAIN_DIGITS SAVE_STEPS THREADS N
//
// DATA is the prefix of the training digits, N counts from 0. A write dies half-way. Before it dies it says on stdout
// where; if it is not killed it says how many operations its saves took.
#include <gradus/gradus.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "../../examples/digits/model.hpp"

namespace {

struct deadly_files {
  using policy_for = gradus::kind::file_system;
  using handle = int;

  // Copies are the same disk, so this is the process's.
  struct plan {
    long at = -1, count = 0;
    bool saving = false, state_renamed = false;
  };
  plan* p;

  int create(const std::string& path, int& h) const {
    if (path.find(".ckpt.gradus-tmp-") != std::string::npos) p->saving = true, p->state_renamed = false;
    count("create", path);
    return disk.create(path, h);
  }
  int open_append(const std::string& path, int& h) const { return disk.open_append(path, h); }
  int open_read(const std::string& path, int& h, std::uint64_t& size) const { return disk.open_read(path, h, size); }
  int write(int h, std::span<const std::byte> from, std::size_t& moved) const {
    if (p->saving && p->count == p->at) (void)!disk.write(h, from.first(from.size() / 2), moved);
    count("write", "");
    return disk.write(h, from, moved);
  }
  int read(int h, std::span<std::byte> into, std::size_t& moved) const { return disk.read(h, into, moved); }
  int sync(int h) const {
    count("sync", "");
    return disk.sync(h);
  }
  int close(int h) const {
    count("close", "");
    return disk.close(h);
  }
  int rename(const std::string& from, const std::string& to) const {
    count("rename", to);
    if (p->saving && gradus::file_name_of(to) == gradus::state_file_name) p->state_renamed = true;
    return disk.rename(from, to);
  }
  int remove(const std::string& path) const {
    count("remove", path);
    return disk.remove(path);
  }
  int claim(int h) const { return disk.claim(h); }
  int open_to_claim(const std::string& path, int& h) const { return disk.open_to_claim(path, h); }
  int exists(const std::string& path) const { return disk.exists(path); }
  int make_directory(const std::string& path) const { return disk.make_directory(path); }
  int sync_directory(const std::string& path) const {
    count("sync_directory", path);
    if (p->state_renamed) p->saving = false;  // acknowledged; what is superseded goes after that
    return disk.sync_directory(path);
  }
  int list(const std::string& path, std::vector<std::string>& names) const { return disk.list(path, names); }

private:
  [[no_unique_address]] gradus::posix disk{};
  void count(const char* operation, const std::string& path) const {
    if (!p->saving || p->count++ != p->at) return;
    std::printf("dies in a save: %s %s\n", operation, path.c_str());
    std::fflush(stdout);
    std::raise(SIGKILL);
  }

public:
  explicit deadly_files(plan& to) : p(&to) {}
};
static_assert(gradus::file_system<deadly_files>);

}  // namespace

int main(int argc, char** argv) {
  if (argc != 9) return 2;
  const auto number = [&](int i) { return std::atol(argv[i]); };
  deadly_files::plan plan{.at = number(8)};
  try {
    auto trainer = gradus::make_trainer<digits::model>(
        gradus::adam{},
        gradus::exponential_decay{.initial = 2e-3, .decay_steps = 300, .decay_rate = 0.7, .staircase = true},
        gradus::clip_by_global_norm{5.0}, gradus::exponential_moving_average{.decay = 0.99},
        gradus::threads{static_cast<int>(number(7))}, gradus::log_lines{}, deadly_files(plan),
        gradus::run_config{
            .model_dir = argv[2], .save_summary_steps = 10, .save_checkpoints_steps = static_cast<double>(number(6))});
    trainer.train(gradus::idx(argv[1]).shuffle(number(5), 0).repeat().batch(number(4)), {.max_steps = number(3)});
    std::printf("operations inside saves: %ld\n", plan.count);
    return 0;
  } catch (const gradus::error& e) {
    std::fprintf(stderr, "digits_killed: %s\n", e.what());
    return 1;
  }
}
