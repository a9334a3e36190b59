// sanitized in every run: a save beside a step
#include "gradus/checkpoint/background.hpp"

#include "gradus/store/directory_lock.hpp"
#include "gradus/testing/faulty_files.hpp"
#include "gradus/testing/temp_dir.hpp"
#include "saving.hpp"

using namespace gradus;
using gradus::testing::faulty_files;
using saving::contains, saving::hand_clock, saving::message, saving::model, saving::names;

namespace {

// A disk that makes whoever creates a file wait while it is shut.
struct shut_files : faulty_files {
  struct gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool shut = false, somebody_waits = false;
    void set(bool now) {
      const std::lock_guard lock(mutex);
      shut = now, somebody_waits = false;
      changed.notify_all();
    }
    void wait_for_somebody() {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return somebody_waits; });
    }
  };
  std::shared_ptr<gate> door = std::make_shared<gate>();
  int create(const std::string& path, int& h) const {
    {
      std::unique_lock lock(door->mutex);
      somebody(lock);
    }
    return faulty_files::create(path, h);
  }

private:
  void somebody(std::unique_lock<std::mutex>& lock) const {
    if (!door->shut) return;
    door->somebody_waits = true;
    door->changed.notify_all();
    door->changed.wait(lock, [this] { return !door->shut; });
  }
};

template <class F = shut_files>
using test_saver = saver<flat_binary, F, hand_clock>;
template <class S = copy_snapshot>
using test_background = background_saver<test_saver<>, S>;

// The door that training goes through.
void change(auto& s, model& m, std::int64_t to) {
  s.before_step();
  if (write_guard* g = s.guard()) {
    g->before_write(std::as_bytes(std::span(m.w)));
    g->before_write(std::as_bytes(std::span(&m.step, 1)));
  }
  m.at(to);
}

}  // namespace

TEST_CASE_TEMPLATE("background_saver: the file is that of a save that was waited for, whatever changed meanwhile", S,
                   copy_snapshot, rolling_snapshot, fork_snapshot) {
  const faulty_files expected;
  const shut_files fs;
  model m(3000);
  saver<flat_binary, faulty_files, hand_clock> waited({.max_to_keep = 0}, {}, expected);
  test_background<S> s(test_saver<>({.max_to_keep = 0}, {}, fs));
  s.prepare(m.list);
  for (std::int64_t step = 1; step <= 5; ++step) {
    m.at(step);
    waited.save(m.list, "d/m", step, {{"model", "v1"}});
    fs.door->set(true);
    CHECK(s.save(m.list, "d/m", step, {{"model", "v1"}}));
    change(s, m, 1000);
    fs.door->set(false);
    s.finish();
  }
  CHECK(fs.files() == expected.files());
  CHECK(fs.files().size() == 6);
  for (const auto& file : expected.files()) CHECK_MESSAGE(fs.bytes(file) == expected.bytes(file), file);
  for (std::int64_t step = 1; step <= 5; ++step) {
    const auto done = s.next_done();
    REQUIRE(done);
    CHECK(done->step == step);
    CHECK(done->result.path == text("d/m-", step, ".ckpt"));
  }
  CHECK(!s.next_done());
  CHECK(s.skipped() == 0);
  CHECK(s.files().restore_latest(m.list, "d")->step == 5);
  CHECK(m.is_at(5));
}

TEST_CASE("background_saver: a save that finds another under way waits for it") {
  const shut_files fs;
  model m;
  test_background<> s(test_saver<>({}, {}, fs));
  fs.door->set(true);
  m.at(1), s.save(m.list, "d/m", 1);
  fs.door->wait_for_somebody();
  CHECK(!s.next_done());
  std::jthread opener([&] { fs.door->set(false); });
  m.at(2), s.save(m.list, "d/m", 2);
  REQUIRE(s.next_done());
  s.finish();
  CHECK(s.next_done()->step == 2);
  CHECK(fs.files() == names{"d/checkpoint", "d/m-1.ckpt", "d/m-2.ckpt"});
}

TEST_CASE("background_saver: or is skipped, and counted") {
  const shut_files fs;
  model m;
  test_background<> s(test_saver<>({}, {}, fs), {}, back_pressure::skip);
  fs.door->set(true);
  m.at(1);
  CHECK(s.save(m.list, "d/m", 1));
  fs.door->wait_for_somebody();
  m.at(2);
  CHECK(!s.save(m.list, "d/m", 2));
  CHECK(!s.save(m.list, "d/m", 3));
  CHECK(s.skipped() == 2);
  fs.door->set(false);
  s.finish();
  m.at(4);
  CHECK(s.save(m.list, "d/m", 4));
  s.finish();
  CHECK(fs.files() == names{"d/checkpoint", "d/m-1.ckpt", "d/m-4.ckpt"});
  CHECK(s.files().restore_latest(m.list, "d")->step == 4);
  CHECK(m.is_at(4));
}

TEST_CASE("background_saver: what goes wrong is raised by the next save, or by finish, once") {
  const shut_files fs;
  model m;
  test_background<> s(test_saver<>({}, {}, fs));
  m.at(1), s.save(m.list, "d/m", 1);
  s.finish();
  fs.count_from_zero();
  fs.plan({.at = 4, .error = ENOSPC});
  m.at(2), s.save(m.list, "d/m", 2);
  const auto why = message([&] { s.finish(); }, status::resource_exhausted);
  CHECK(contains(why, "step 2 is not saved: cannot write \"d/m-2.ckpt.gradus-tmp-"));
  s.finish();
  REQUIRE(s.next_done());
  CHECK(!s.next_done());

  fs.count_from_zero();
  fs.plan({.at = 4, .error = EIO});
  m.at(3), s.save(m.list, "d/m", 3);
  CHECK(contains(message([&] { s.save(m.list, "d/m", 4); }, status::data_loss), "step 3 is not saved"));
  // The call that raised saved nothing; the next one does.
  m.at(5), s.save(m.list, "d/m", 5);
  s.finish();
  CHECK(s.next_done()->step == 5);
  CHECK(fs.files() == names{"d/checkpoint", "d/m-1.ckpt", "d/m-5.ckpt"});
}

TEST_CASE("background_saver: a save that has begun is finished before the saver is gone") {
  const shut_files fs;
  model m;
  {
    test_background<> s(test_saver<>({}, {}, fs));
    m.at(1), s.save(m.list, "d/m", 1);
  }
  CHECK(fs.files() == names{"d/checkpoint", "d/m-1.ckpt"});
  { test_background<> never_used(test_saver<>({}, {}, fs)); }
}

TEST_CASE("background_saver: its thread finds that the directory was moved away and made again") {
  const gradus::testing::temp_dir dir;
  const std::string run = dir / "run";
  model m;
  background_saver<saver<>, copy_snapshot> s(saver<>{});
  const auto alone = hold_directory(posix{}, run);
  s.files().share(alone);
  m.at(1), s.save(m.list, run + "/model", 1);
  s.finish();
  REQUIRE(posix{}.rename(run, dir / "old") == 0);
  {
    const auto other = hold_directory(posix{}, run);
    m.at(2), s.save(m.list, run + "/model", 2);
    CHECK(contains(message([&] { s.finish(); }, status::failed_precondition), "to be the only one that writes into"));
  }
  s.save(m.list, run + "/model", 2);
  s.finish();
  CHECK_THROWS_AS(hold_directory(posix{}, run), failed_precondition);
  CHECK(read_state_file(posix{}, run)->all == std::vector<std::string>{"model-2.ckpt"});
}
