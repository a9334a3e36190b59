#include "gradus/checkpoint/saver.hpp"

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/wait.h>
#include <gradus/base/version.hpp>
#include <thread>

#include "gradus/codec/cereal.hpp"
#include "gradus/store/directory_lock.hpp"
#include "gradus/testing/faulty_files.hpp"
#include "gradus/testing/temp_dir.hpp"
#include "saving.hpp"

using namespace gradus;
using gradus::testing::faulty_files;
using gradus::testing::killed;
using gradus::testing::temp_dir;
using saving::bytes_blob, saving::contains, saving::hand_clock, saving::message, saving::model, saving::names;

namespace {

template <class F = faulty_files, class Codec = flat_binary>
using test_saver = saver<Codec, F, hand_clock>;

std::string state_text(const faulty_files& fs, const std::string& directory) {
  const auto bytes = read_file(fs, join_path(directory, "checkpoint"));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

TEST_CASE_TEMPLATE("saver: what is saved is restored, with its metadata", Codec, flat_binary, cereal_binary) {
  const faulty_files fs;
  model m;
  test_saver<faulty_files, Codec> s({}, {}, fs);
  m.at(12);
  CHECK(s.save(m.list, "runs/a/model", 12, {{"model", "v1"}}).path == "runs/a/model-12.ckpt");
  m.at(99);
  const auto r = s.restore(m.list, "runs/a/model-12.ckpt", {.model = "v1"});
  CHECK(m.is_at(12));
  CHECK(r.step == 12);
  CHECK(r.about ==
        metadata{{"codec", std::string(Codec::name)}, {"library", "gradus " GRADUS_VERSION}, {"model", "v1"}});
  CHECK(r.damaged.empty());
  m.at(99);
  const auto latest = s.restore_latest(m.list, "runs/a");
  REQUIRE(latest);
  CHECK(latest->path == "runs/a/model-12.ckpt");
  CHECK(m.is_at(12));
  CHECK(!s.restore_latest(m.list, "runs/b"));
  CHECK(m.is_at(12));
  CHECK(fs.open_handles() == 0);
}

TEST_CASE("saver: the same state gives the same bytes") {
  const faulty_files a, b;
  model m;
  m.at(3);
  test_saver<>({}, {}, a).save(m.list, "m", 3);
  test_saver<>({}, {}, b).save(m.list, "m", 3);
  CHECK(a.bytes("m-3.ckpt") == b.bytes("m-3.ckpt"));
}

TEST_CASE("saver: seven saves, five kept; the state file lists them oldest first; the same step stands once") {
  const faulty_files fs;
  const hand_clock clock;
  model m;
  test_saver<> s({}, {}, fs, clock);
  for (int i = 1; i <= 7; ++i) {
    *clock.time = 1000 + i;
    const auto out = s.save(m.list, "d/m", i);
    CHECK(out.removed == (i < 6 ? names{} : names{text("d/m-", i - 5, ".ckpt")}));
  }
  CHECK(fs.files() == names{"d/checkpoint", "d/m-3.ckpt", "d/m-4.ckpt", "d/m-5.ckpt", "d/m-6.ckpt", "d/m-7.ckpt"});
  const auto said = state_text(fs, "d");
  const auto begin = said.find("model_");
  CHECK(said.substr(begin, said.rfind("# crc32c: ") - begin) ==
        "model_checkpoint_path: \"m-7.ckpt\"\n"
        "all_model_checkpoint_paths: \"m-3.ckpt\"\n"
        "all_model_checkpoint_paths: \"m-4.ckpt\"\n"
        "all_model_checkpoint_paths: \"m-5.ckpt\"\n"
        "all_model_checkpoint_paths: \"m-6.ckpt\"\n"
        "all_model_checkpoint_paths: \"m-7.ckpt\"\n"
        "all_model_checkpoint_timestamps: 1003\n"
        "all_model_checkpoint_timestamps: 1004\n"
        "all_model_checkpoint_timestamps: 1005\n"
        "all_model_checkpoint_timestamps: 1006\n"
        "all_model_checkpoint_timestamps: 1007\n"
        "# superseded: \"m-2.ckpt\"\n");
  s.save(m.list, "d/m", 4);
  CHECK(s.checkpoints() == names{"m-3.ckpt", "m-5.ckpt", "m-6.ckpt", "m-7.ckpt", "m-4.ckpt"});
  CHECK(latest_checkpoint(fs, "d") == "d/m-4.ckpt");  // by order of saving, never by step

  // A second run goes on with the list.
  test_saver<> next({.max_to_keep = 5}, {}, fs, clock);
  CHECK(next.save(m.list, "d/m", 8).removed == names{"d/m-3.ckpt"});
  // A smaller limit is reached one save at a time.
  test_saver<> fewer({.max_to_keep = 2}, {}, fs, clock);
  CHECK(fewer.save(m.list, "d/m", 9).removed == names{"d/m-5.ckpt"});
  CHECK(fewer.checkpoints().size() == 5);
}

TEST_CASE("saver: max_to_keep 0 deletes nothing and lists the newest") {
  const faulty_files fs;
  model m;
  test_saver<> s({.max_to_keep = 0}, {}, fs);
  for (int i = 1; i <= 7; ++i) CHECK(s.save(m.list, "m", i).removed.empty());
  CHECK(fs.files().size() == 8);
  CHECK(read_state_file(fs, ".")->all == names{"m-7.ckpt"});
}

TEST_CASE("saver: one in n hours survives; a restart counts anew") {
  const faulty_files fs;
  const hand_clock clock;
  model m;
  test_saver<> s({.max_to_keep = 1, .keep_checkpoint_every_n_hours = 1}, {}, fs, clock);
  for (int i = 1; i <= 8; ++i) {
    *clock.time += 1500;  // 25 minutes: steps 3, 5, 8 are the first after 60, 120, 180 minutes
    s.save(m.list, "m", i);
  }
  CHECK(fs.files() == names{"checkpoint", "m-3.ckpt", "m-5.ckpt", "m-8.ckpt"});
  CHECK(s.checkpoints() == names{"m-8.ckpt"});
  *clock.time += 36000;
  test_saver<> again({.max_to_keep = 1, .keep_checkpoint_every_n_hours = 1}, {}, fs, clock);
  CHECK(again.save(m.list, "m", 9).removed == names{"m-8.ckpt"});
}

TEST_CASE("saver: settings and names that make no sense") {
  const faulty_files fs;
  model m;
  CHECK(message([&] { test_saver<>({.max_to_keep = -1}, {}, fs); }, status::invalid_argument) ==
        "max_to_keep is -1; give how many checkpoints to keep, or 0 for all");
  CHECK(message([&] { test_saver<>({.keep_checkpoint_every_n_hours = 0}, {}, fs); }, status::invalid_argument) ==
        "keep_checkpoint_every_n_hours is 0; give a positive number of hours");
  test_saver<> s({}, {}, fs);
  CHECK(message([&] { s.save(m.list, "d/", 1); }, status::invalid_argument) ==
        "a checkpoint is named by a path that ends in a name, and a step from 0 on; found \"d/\" and 1");
  message([&] { s.save(m.list, "d/m", -1); }, status::invalid_argument);
  CHECK(fs.files().empty());
}

TEST_CASE("restore: a checkpoint of another model is refused in one text, and nothing is written") {
  const faulty_files fs;
  model m, other(6);
  double extra = 1.5;
  other.list.scalar("extra", extra);
  test_saver<> s({}, {}, fs);
  m.at(5);
  s.save(m.list, "d/m", 5, {{"model", "a"}});
  other.at(9);
  const auto text = message([&] { s.restore(other.list, "d/m-5.ckpt", {.model = "b"}); }, status::not_found);
  CHECK(text ==
        "checkpoint \"d/m-5.ckpt\" does not fit this model:\n"
        "  missing in the file: \"extra\"\n"
        "  of another type or shape: \"w\" (float32[6] here, float32[5] in the file)\n"
        "  the fingerprint of the model: \"b\" here, \"a\" in the file\n"
        "Restore it with the model, rule and policies that wrote it, or start in another directory, with a warm start "
        "if values of this one are wanted; to read only what this "
        "model has, give the saver's restore {.ignore_extra = true}. Nothing was "
        "changed.");
  CHECK(other.is_at(9));
  CHECK(extra == 1.5);
  // Fallback is for damage, not for another model.
  message([&] { s.restore_latest(other.list, "d", {.fallback = true}); }, status::not_found);

  // Part of a checkpoint, if that is said.
  std::vector<float> w(5);
  state_list part;
  part.tensor("w", {5}, std::span<float>(w));
  CHECK(contains(message([&] { s.restore(part, "d/m-5.ckpt"); }, status::invalid_argument),
                 "in the file, but not in this model: \"global_step\", \"position\""));
  CHECK(w[1] == 0);
  s.restore(part, "d/m-5.ckpt", {.ignore_extra = true});
  CHECK(w == m.w);
}

TEST_CASE("restore: damage is named, an older intact checkpoint is pointed at, or taken if told") {
  const faulty_files fs;
  model m;
  test_saver<> s({}, {}, fs);
  for (int i = 1; i <= 4; ++i) m.at(i), s.save(m.list, "d/m", i);
  fs.bytes("d/m-4.ckpt").back() ^= std::byte{1};
  fs.bytes("d/m-3.ckpt").resize(100);
  m.at(50);
  auto text = message([&] { s.restore_latest(m.list, "d"); }, status::data_loss);
  CHECK(text ==
        "checkpoint \"d/m-4.ckpt\" cannot be restored: the checksum of \"position\" does not fit its bytes (384 to "
        "387). The newest "
        "intact one beside it is \"d/m-2.ckpt\" (step 2): restore it by its path, or set restore_options::fallback "
        "(restore_fallback of a run_config and of the options of supervisors, sessions and predictors). Nothing was "
        "changed.");
  CHECK(text == message([&] { s.restore(m.list, "d/m-4.ckpt"); }, status::data_loss));
  CHECK(m.is_at(50));

  const auto r = s.restore_latest(m.list, "d", {.fallback = true});
  REQUIRE(r);
  CHECK(m.is_at(2));
  CHECK(r->path == "d/m-2.ckpt");
  REQUIRE(r->damaged.size() == 2);
  CHECK(r->damaged[0].path == "d/m-4.ckpt");
  CHECK(r->damaged[1].path == "d/m-3.ckpt");
  CHECK(contains(r->damaged[1].reason, "truncated: 100 of"));
  CHECK(fs.holds("d/m-4.ckpt"));  // kept, for whoever wants to look

  // Named by the state file but gone: an error, not a fresh start.
  fs.remove("d/m-4.ckpt");
  text = message([&] { s.restore_latest(m.list, "d"); }, status::not_found);
  CHECK(contains(text, "cannot open \"d/m-4.ckpt\": No such file or directory"));
  CHECK(contains(text, "\"d/m-2.ckpt\" (step 2)"));

  // A damaged state file: the directory is searched, newest step first.
  fs.bytes("d/checkpoint").resize(3);
  CHECK(
      contains(message([&] { s.restore_latest(m.list, "d"); }, status::data_loss), "the state file \"d/checkpoint\""));
  m.at(50);
  const auto found = s.restore_latest(m.list, "d", {.fallback = true});
  CHECK(m.is_at(2));
  CHECK(found->damaged[0].path == "d/checkpoint");

  for (const char* path : {"d/m-1.ckpt", "d/m-2.ckpt"}) fs.bytes(path).clear();
  m.at(50);
  text = message([&] { s.restore(m.list, "d/m-2.ckpt", {.fallback = true}); }, status::data_loss);
  CHECK(contains(text, "No other checkpoint in its directory is intact"));
  CHECK(m.is_at(50));
}

TEST_CASE("restore: another codec or a newer version is not damage") {
  const faulty_files fs;
  model m;
  test_saver<faulty_files, cereal_binary>({}, {}, fs).save(m.list, "d/m", 1);
  CHECK(message([&] { test_saver<>({}, {}, fs).restore_latest(m.list, "d", {.fallback = true}); },
                status::failed_precondition) ==
        "checkpoint \"d/m-1.ckpt\" cannot be read: it was written by the codec \"cereal_binary\", and is read here by "
        "\"flat_binary\"; name the codec that wrote it");
}

TEST_CASE("saver: a hostile state file deletes nothing outside, and nothing that is no checkpoint") {
  const faulty_files fs;
  model m;
  for (const char* path : {"victim-1.ckpt", "d/notes.txt", "d/data-5.csv", "d/old-1.ckpt"}) {
    make_directories(fs, directory_of(path));
    publish(fs, path, "precious");
  }
  publish(fs, "d/checkpoint",
          "model_checkpoint_path: \"notes.txt\" all_model_checkpoint_paths: \"/victim-1.ckpt\" "
          "all_model_checkpoint_paths: \"data-5.csv\" all_model_checkpoint_paths: \"sub/old-1.ckpt\"\n"
          "# superseded: \"notes.txt\"\n# superseded: \"../victim-1.ckpt\"\n# superseded: \"data-5.csv\"\n");
  test_saver<> s({.max_to_keep = 1}, {}, fs);
  for (int i = 1; i <= 4; ++i) s.save(m.list, "d/m", i);
  for (const char* path : {"victim-1.ckpt", "d/notes.txt", "d/data-5.csv", "d/old-1.ckpt"}) CHECK(fs.holds(path));
}

TEST_CASE("saver: what a killed process left is cleared away, and nothing else") {
  const faulty_files fs;
  model m;
  make_directories(fs, "d");
  for (const char* name : {"d/m-3.ckpt.gradus-tmp-0", "d/checkpoint.gradus-tmp-12", "d/graph.pbtxt.gradus-tmp-0",
                           "d/m-3.meta.gradus-tmp-7", "d/checkpoint_input.gradus-tmp-4",
                           "d/checkpoint-3.ckpt.gradus-tmp-5", "d/e.gradus-tmp-1.gradus-tmp-2", "d/x"}) {
    int h = 0;
    CHECK(fs.create(name, h) == 0);
    fs.close(h);
  }
  publish(fs, "d/m-1.ckpt", "");
  publish(fs, "d/m-2.ckpt", "");
  publish(fs, "d/checkpoint", "model_checkpoint_path: \"m-2.ckpt\"\n# superseded: \"m-1.ckpt\"\n");
  test_saver<> s({}, {}, fs);
  CHECK(s.save(m.list, "d/m", 9).removed == names{"d/m-1.ckpt"});
  CHECK(fs.files() == names{"d/checkpoint", "d/checkpoint_input.gradus-tmp-4", "d/e.gradus-tmp-1.gradus-tmp-2",
                            "d/m-2.ckpt", "d/m-9.ckpt", "d/x"});
}

TEST_CASE("saver: a checkpoint that is in no list stays, and a new one of its step has another name") {
  const auto text_of = [](const faulty_files& fs, const std::string& path) {
    return std::string(reinterpret_cast<const char*>(fs.bytes(path).data()), fs.bytes(path).size());
  };
  const faulty_files fs;
  model m;
  test_saver<> s({.max_to_keep = 0}, {}, fs);
  for (int i = 1; i <= 3; ++i) m.at(i), s.save(m.list, "d/m", i);
  const std::string old = text_of(fs, "d/m-2.ckpt");
  m.at(9);
  m.step = 2;
  CHECK(s.save(m.list, "d/m", 2).path == "d/m-2.r1.ckpt");
  CHECK(text_of(fs, "d/m-2.ckpt") == old);
  // The one in the list is replaced in its place.
  CHECK(s.save(m.list, "d/m", 2).path == "d/m-2.r1.ckpt");
  CHECK(s.checkpoints() == names{"m-2.r1.ckpt"});
  CHECK(fs.files() == names{"d/checkpoint", "d/m-1.ckpt", "d/m-2.ckpt", "d/m-2.r1.ckpt", "d/m-3.ckpt"});
  // Nor is one replaced whose state file was damaged.
  fs.bytes("d/checkpoint").resize(3);
  CHECK(test_saver<>({}, {}, fs).save(m.list, "d/m", 2).path == "d/m-2.r2.ckpt");
  CHECK(text_of(fs, "d/m-2.ckpt") == old);
}

TEST_CASE("saver: TensorFlow's list with absolute paths is taken up by the names in the directory") {
  const faulty_files fs;
  model m;
  test_saver<> s({}, {}, fs);
  for (int i = 1; i <= 2; ++i) m.at(i), s.save(m.list, "d/m", i);
  publish(fs, "d/checkpoint",
          "model_checkpoint_path: \"/old/d/m-2.ckpt\"\nall_model_checkpoint_paths: \"/old/d/m-1.ckpt\"\n"
          "all_model_checkpoint_paths: \"/old/d/m-7.ckpt\"\nall_model_checkpoint_paths: \"/old/d/m-2.ckpt\"\n");
  test_saver<> next({.max_to_keep = 2}, {}, fs);
  next.own("d");
  CHECK(next.checkpoints() == names{"m-1.ckpt", "m-2.ckpt"});
}

TEST_CASE("saver: a saver that follows a directory takes up the list of whoever has saved there since") {
  const faulty_files fs;
  model m;
  const saver_options keep{.max_to_keep = 4, .best = {.count = 1}};
  test_saver<> first(keep, {}, fs), other(keep, {}, fs);
  const auto save = [&](test_saver<>& by, int i) { m.at(i), by.save(m.list, "d/m", i); };
  save(first, 1), save(first, 2);
  first.follow("d");  // its own list
  CHECK(first.checkpoints() == names{"m-1.ckpt", "m-2.ckpt"});
  other.own("d"), save(other, 3), other.measured(0.5, 3);
  first.own("d");  // knows its own
  CHECK(first.checkpoints() == names{"m-1.ckpt", "m-2.ckpt"});
  first.follow("d");
  CHECK(first.checkpoints() == names{"m-1.ckpt", "m-2.ckpt", "m-3.ckpt"});
  CHECK(first.rank_of("d/m", 3) == 0.5);
  other.measured(0.25, 3);  // the ranks alone
  first.follow("d");
  CHECK(first.rank_of("d/m", 3) == 0.25);
  save(first, 4);
  CHECK(read_state_file(fs, "d")->all == names{"m-1.ckpt", "m-2.ckpt", "m-3.ckpt", "m-4.ckpt"});
  // A list that cannot be read is no other one; the next save replaces it.
  publish(fs, "d/checkpoint", "model_checkpoint_path: ");
  first.follow("d");
  CHECK(first.checkpoints() == names{"m-1.ckpt", "m-2.ckpt", "m-3.ckpt", "m-4.ckpt"});
}

TEST_CASE("saver: a saver that takes over a directory ranks the newest checkpoint there, if it is of the given step") {
  const faulty_files fs;
  model m;
  const saver_options keep{.max_to_keep = 1, .best = {.count = 1}};
  CHECK(contains(message([&] { test_saver<>(keep, {}, fs).measured(1); }, status::failed_precondition),
                 "this saver has saved nothing yet"));
  CHECK(test_saver<>(keep, {}, fs).measured(1, 2).path.empty());
  test_saver<>(keep, {}, fs).save(m.list, "d/m", 2);
  test_saver<> next(keep, {}, fs);
  next.own("d");
  CHECK(next.measured(0.5, 1).path.empty());
  CHECK(read_state_file(fs, "d")->best.empty());
  CHECK(next.measured(0.5, 2).path == "d/m-2.ckpt");
  using ranks = std::vector<std::pair<std::string, double>>;
  CHECK(read_state_file(fs, "d")->best == ranks{{"m-2.ckpt", 0.5}});
  CHECK(next.measured(0.25).path == "d/m-2.ckpt");
  CHECK(read_state_file(fs, "d")->best == ranks{{"m-2.ckpt", 0.25}});
}

// --- faults ---

TEST_CASE("saver: no fault in a save of a step takes the checkpoint of that step which no list, or TensorFlow's, has") {
  for (const bool foreign : {false, true})
    for (const bool kill : {false, true}) {
      bool finished = false;
      for (std::int64_t at = 0; !finished; ++at) {
        CAPTURE(at);
        const faulty_files fs;
        model m;
        const saver_options all{.max_to_keep = 0};
        for (int i = 1; i <= 3; ++i) m.at(i), test_saver<>(all, {}, fs).save(m.list, "d/m", i);
        if (foreign) {
          const std::string path = "\"/old/d/m-2.ckpt\"\n";
          publish(fs, "d/checkpoint", text("model_checkpoint_path: ", path, "all_model_checkpoint_paths: ", path));
        }
        const auto old = fs.bytes("d/m-2.ckpt");
        fs.count_from_zero();
        if (kill)
          fs.plan({.at = at, .kill = true});
        else
          fs.plan({.at = at, .error = EIO});
        m.at(2);
        try {
          test_saver<>(all, {}, fs).save(m.list, "d/m", 2);
        } catch (const killed&) {
        } catch (const error&) {
        }
        finished = fs.operations() <= at;
        if (!kill) fs.plan({});
        const faulty_files disk = kill ? fs.after_kill() : fs;
        test_saver<>(all, {}, disk).own("d");
        REQUIRE(disk.holds("d/m-2.ckpt"));
        CHECK(disk.bytes("d/m-2.ckpt") == old);
        model found;
        const auto r = test_saver<>(all, {}, disk).restore_latest(found.list, "d");
        REQUIRE(r);
        CHECK(found.is_at(r->step));
        if (foreign || finished) CHECK(r->step == 2);
      }
    }
}

TEST_CASE("saver: every error at every operation is reported and leaves the last checkpoint; the next save works") {
  int failed_saves = 0;
  for (const int error_number : {ENOSPC, EIO, EACCES, EROFS, EDQUOT})
    for (const bool persistent : {false, true})
      for (std::int64_t at = 0;; ++at) {
        const faulty_files fs;
        model m;
        test_saver<> s({.max_to_keep = 2}, {}, fs);
        for (int i = 1; i <= 2; ++i) m.at(i), s.save(m.list, "d/m", i);
        fs.count_from_zero();
        fs.plan({.at = at, .error = error_number, .persistent = persistent});
        m.at(3);
        std::string text;
        saved result;
        try {
          result = s.save(m.list, "d/m", 3);
        } catch (const error& e) {
          text = e.what();
          CHECK(e.kind() == status_of_errno(error_number));
        }
        const auto done = fs.operations();
        fs.plan({});
        CHECK(fs.open_handles() == 0);
        for (const auto& file : fs.files()) CHECK_MESSAGE(!is_temporary(file), file);
        // Whoever starts now finds the last acknowledged step, or the one whose save was refused at its very end.
        model found;
        const auto r = test_saver<>({}, {}, fs).restore_latest(found.list, "d");
        REQUIRE(r);
        CHECK(found.is_at(r->step));
        if (text.empty()) {
          CHECK(r->step == 3);
        } else {
          ++failed_saves;
          CHECK(contains(text, "step 3 is not saved: cannot "));
          CHECK(contains(text, std::strerror(error_number)));
          CHECK(contains(text, advice_of_errno(error_number)));
          CHECK(contains(text, "The checkpoints before it are as they were."));
          CHECK(fs.holds("d/m-1.ckpt"));
          if (!contains(text, "sync the directory")) {
            CHECK(r->step == 2);
            CHECK(!fs.holds("d/m-3.ckpt"));
          }
        }
        // And it can go on: steps 4 and 5 are saved, all others are gone.
        for (int i = 4; i <= 5; ++i) m.at(i), s.save(m.list, "d/m", i);
        CHECK(fs.files() == names{"d/checkpoint", "d/m-4.ckpt", "d/m-5.ckpt"});
        if (at >= done) {
          CHECK(text.empty());
          CHECK(result.removed == names{"d/m-1.ckpt"});
          break;
        }
      }
  CHECK(failed_saves >= 100);
}

TEST_CASE("saver: the very first save fails as cleanly") {
  for (std::int64_t at = 0;; ++at) {
    const faulty_files fs;
    fs.plan({.at = at, .error = ENOSPC});
    model m;
    test_saver<> s({}, {}, fs);
    m.at(1);
    std::string text;
    try {
      s.save(m.list, "runs/d/m", 1);
    } catch (const resource_exhausted& e) {
      text = e.what();
      CHECK(contains(text, "the disk is full: free some space, keep fewer files, or choose another directory"));
    }
    const auto done = fs.operations();
    fs.plan({});
    CHECK(fs.open_handles() == 0);
    for (const auto& file : fs.files()) CHECK_MESSAGE(!is_temporary(file), file);
    m.at(2);
    s.save(m.list, "runs/d/m", 2);
    CHECK(s.restore_latest(m.list, "runs/d")->step == 2);
    if (at < done) continue;
    CHECK(text.empty());
    break;
  }
}

TEST_CASE("saver: interrupted calls and short writes change nothing") {
  for (const bool shortly : {false, true})
    for (std::int64_t at = 0;; ++at) {
      const faulty_files fs;
      model m;
      test_saver<> s({.max_to_keep = 1}, {}, fs);
      m.at(1), s.save(m.list, "d/m", 1);
      fs.count_from_zero();
      fs.plan({.at = at, .error = shortly ? 0 : EINTR, .short_write = shortly});
      m.at(2), s.save(m.list, "d/m", 2);
      model found;
      test_saver<>({}, {}, fs).restore_latest(found.list, "d");
      CHECK(found.is_at(2));
      CHECK(fs.files() == names{"d/checkpoint", "d/m-2.ckpt"});
      if (at >= fs.operations()) break;
    }
}

namespace {

// Mutants: what the sweep below must notice.
struct never_syncs_files : faulty_files {
  using faulty_files::faulty_files;
  int sync(int) const { return 0; }
};
struct never_syncs_names : faulty_files {
  int sync_directory(const std::string&) const { return 0; }
};
struct writes_in_place : faulty_files {  // no temporary: straight to the file's own name
  int claim(int) const { return ENOLCK; }
  int create(const std::string& path, int& h) const {
    const auto at = path.find(".gradus-tmp-");
    faulty_files::remove(path.substr(0, at));
    return faulty_files::create(path.substr(0, at), h);
  }
  int rename(const std::string&, const std::string&) const { return 0; }
};

struct tally {
  std::size_t kills = 0, states = 0, lost = 0, torn = 0, orphans = 0;
};

// A run of `steps` saves that keeps two, killed at every operation. After the kill, and after every power failure at
// that instant, a new process must find the last acknowledged step or the one after it, whole, and be able to save.
template <class F>
tally sweep(std::int64_t steps, std::size_t elements, std::size_t most_bytes_per_write) {
  tally out;
  bool finished = false;
  for (std::int64_t at = 0; !finished; ++at) {
    const F fs;
    fs.short_writes(most_bytes_per_write);
    fs.plan({.at = at, .kill = true});
    std::int64_t acknowledged = 0;
    try {
      model m(elements);
      test_saver<F> s({.max_to_keep = 2}, {}, fs);
      for (std::int64_t i = 1; i <= steps; ++i) {
        m.at(i);
        s.save(m.list, "d/m", i);
        acknowledged = i;
      }
      finished = true;
    } catch (const killed&) {
    }
    const auto judge = [&](const faulty_files& after) {
      ++out.states;
      model found(elements);
      try {
        test_saver<> s({.max_to_keep = 2}, {}, after);
        const auto r = s.restore_latest(found.list, "d");
        const std::int64_t step = r ? r->step : 0;
        if (step < acknowledged || step > acknowledged + 1) ++out.lost;
        if (r && !found.is_at(step)) ++out.torn;
        found.at(steps + 1);
        s.save(found.list, "d/m", steps + 1);
        for (const auto& file : after.files()) out.torn += is_temporary(file);
        s.save(found.list, "d/m", steps + 2);
        found.at(steps + 1);
        s.save(found.list, "d/m", steps + 1);
        for (const auto& file : after.files()) out.torn += is_temporary(file);
        const auto files = after.files();
        if (std::count_if(files.begin(), files.end(), [](auto& f) { return f.ends_with(".ckpt"); }) != 2) ++out.orphans;
        model again(elements);
        if (!s.restore_latest(again.list, "d") || !again.is_at(steps + 1)) ++out.lost;
      } catch (const error&) {
        ++out.torn;
      }
    };
    ++out.kills;
    judge(fs.after_kill());
    fs.after_power_failure(judge);
  }
  return out;
}

}  // namespace

TEST_CASE("saver: killed or without power at any operation, the next run finds step n or n - 1, and no ack is lost") {
  for (const auto& [elements, most] : {std::pair<std::size_t, std::size_t>{5, SIZE_MAX}, {700, 512}, {700, 1000}}) {
    const auto t = sweep<faulty_files>(4, elements, most);
    CHECK(t.kills > 50);
    CHECK(t.states > 300);
    CHECK(t.lost == 0);
    CHECK(t.torn == 0);
    CHECK(t.orphans == 0);
    MESSAGE(elements, " elements: ", t.kills, " kill points, ", t.states, " disks after a kill or a power failure");
  }
}

TEST_CASE("saver: what is saved in a directory whose maker was killed survives a power failure") {
  std::size_t states = 0;
  bool finished = false;
  for (std::int64_t at = 0; !finished; ++at) {
    CAPTURE(at);
    const faulty_files fs;
    model m;
    fs.plan({.at = at, .kill = true});
    try {
      m.at(1), test_saver<>({}, {}, fs).save(m.list, "runs/a/d/m", 1);
      finished = true;
    } catch (const killed&) {
    }
    const auto disk = fs.after_kill();
    m.at(2), test_saver<>({}, {}, disk).save(m.list, "runs/a/d/m", 2);
    disk.after_power_failure([&](const faulty_files& left) {
      ++states;
      model found;
      const auto r = test_saver<>({}, {}, left).restore_latest(found.list, "runs/a/d");
      CHECK((r && r->step == 2 && found.is_at(2)));
    });
  }
  CHECK(states > 20);
}

TEST_CASE("saver: the same test notices a file system that does not sync, and a save that is not atomic") {
  const auto no_sync = sweep<never_syncs_files>(2, 200, SIZE_MAX);
  CHECK(no_sync.lost + no_sync.torn > 0);
  const auto no_directory_sync = sweep<never_syncs_names>(2, 5, SIZE_MAX);
  CHECK(no_directory_sync.lost > 0);
  const auto in_place = sweep<writes_in_place>(2, 5, SIZE_MAX);
  CHECK(in_place.torn > 0);
}

TEST_CASE("saver: however often a run is killed, no more checkpoints than keep_checkpoint_max are left") {
  // Each run is killed at the same operation of its first save, which is of a step of its own.
  std::size_t most = 0;
  for (int at = 0; at < 24; ++at) {
    faulty_files fs;
    model m;
    for (int i = 1; i <= 4; ++i) test_saver<>({.max_to_keep = 3}, {}, fs).save(m.list, "d/m", i);
    for (int kill = 0; kill < 10; ++kill) {
      fs = fs.after_kill();
      fs.plan({.at = at, .kill = true});
      try {
        test_saver<> s({.max_to_keep = 3}, {}, fs);
        s.restore_latest(m.list, "d");
        s.save(m.list, "d/m", 10 + kill);
      } catch (const killed&) {
      }
    }
    most = std::max(most, fs.files().size());
    fs = fs.after_kill();
    test_saver<>({.max_to_keep = 3}, {}, fs).save(m.list, "d/m", 99);
    CHECK(fs.files().size() == 4);  // three, and the state file
  }
  CHECK(most > 4);
}

TEST_CASE("saver: what a living saver is writing is not cleared by another one") {
  const faulty_files fs;
  model m;
  test_saver<>({.max_to_keep = 3}, {}, fs).save(m.list, "d/m", 1);
  // Another process has staged a save of step 2, and revealed its checkpoint.
  const auto state = to_text({"m-2.ckpt", {"m-1.ckpt", "m-2.ckpt"}, {1, 2}, {}});
  const auto piece = std::as_bytes(std::span(state.data(), state.size()));
  const std::span<const std::byte> whole = fs.bytes("d/m-1.ckpt");
  const file_content files[] = {{"d/m-2.ckpt", byte_pieces(&whole, 1)}, {"d/checkpoint", byte_pieces(&piece, 1)}};
  publication theirs(fs);
  REQUIRE(!theirs.stage(files));
  REQUIRE(!theirs.reveal(1));
  test_saver<>({.max_to_keep = 3}, {}, fs).own("d");
  CHECK(fs.holds("d/m-2.ckpt"));
  REQUIRE(!theirs.reveal(1));
  CHECK(latest_checkpoint(fs, "d") == "d/m-2.ckpt");
}

TEST_CASE("restore_latest: a checkpoint that is not of the step that its name says is refused") {
  const faulty_files fs;
  model m;
  test_saver<> s({}, {}, fs);
  for (const int i : {100, 110, 120}) m.at(i), s.save(m.list, "d/m", i);
  fs.bytes("d/m-120.ckpt") = fs.bytes("d/m-110.ckpt");
  m.at(7);
  CHECK(message([&] { s.restore_latest(m.list, "d"); }, status::data_loss) ==
        "checkpoint \"d/m-120.ckpt\" cannot be restored: its name says step 120, but the checkpoint in it says step "
        "110: another checkpoint was copied or renamed to it; put the right file there, or restore this one by its "
        "path. The newest intact one beside it is \"d/m-110.ckpt\" (step 110): restore it by its path, or set "
        "restore_options::fallback (restore_fallback of a run_config and of the options of supervisors, sessions and "
        "predictors). Nothing was changed.");
  CHECK(m.is_at(7));
  const auto r = s.restore_latest(m.list, "d", {.fallback = true});
  CHECK(r->path == "d/m-110.ckpt");
  CHECK(r->damaged.size() == 1);
  // By its own path it opens, whatever it is called.
  m.at(7);
  CHECK(s.restore(m.list, "d/m-120.ckpt").step == 110);
  CHECK(m.is_at(110));
  for (const char* name : {"d/best.ckpt", "d/m-7.ckpt", "d/copy-of-110.ckpt"}) {
    publish(fs, name,
            std::string_view(reinterpret_cast<const char*>(fs.bytes("d/m-110.ckpt").data()),
                             fs.bytes("d/m-110.ckpt").size()));
    CHECK(s.restore(m.list, name).step == 110);
  }
  // A name without a step says nothing that could be wrong.
  publish(fs, "d/checkpoint", "model_checkpoint_path: \"best.ckpt\"");
  CHECK(s.restore_latest(m.list, "d")->step == 110);
}

TEST_CASE("warnings of a restore: what was passed over, and what the checkpoint itself warns of") {
  restored found;
  found.path = "run/model-3.ckpt", found.step = 3;
  std::vector<std::string> lines;
  const auto log = [&](std::string_view line) { lines.emplace_back(line); };
  detail::pass_warnings(found, log);
  CHECK(lines.empty());
  found.damaged = {{"run/model-5.ckpt", "cut"}, {"run/model-4.ckpt", "a wrong checksum"}};
  found.warning = "another input";
  detail::pass_warnings(found, log);
  CHECK(lines == std::vector<std::string>{"passed over run/model-5.ckpt: cut",
                                          "passed over run/model-4.ckpt: a wrong checksum",
                                          "checkpoint run/model-3.ckpt: another input"});
}

TEST_CASE("restore_latest: checkpoints without a state file are no fresh start") {
  const faulty_files fs;
  model m;
  test_saver<> s({}, {}, fs);
  for (int i = 1; i <= 4; ++i) m.at(i), s.save(m.list, "d/m", i);
  fs.remove("d/checkpoint");
  fs.bytes("d/m-4.ckpt").resize(50);
  m.at(9);
  test_saver<> next({}, {}, fs);
  CHECK(
      message([&] { next.restore_latest(m.list, "d"); }, status::failed_precondition) ==
      "the directory \"d\" holds checkpoints, but no state file (\"checkpoint\") that says which of them is the "
      "newest. The newest intact one is \"d/m-3.ckpt\" (step 3). Set restore_newest = true to go on from it, or choose "
      "an empty directory to start anew. Nothing was changed.");
  CHECK(m.is_at(9));
  CHECK(latest_checkpoint(fs, "d").empty());  // TensorFlow's answer
  CHECK(!next.restore_latest(m.list, "d", {.prefix = "input"}));
  const auto r = next.restore_latest(m.list, "d", {.restore_newest = true});
  REQUIRE(r);
  CHECK(r->path == "d/m-3.ckpt");
  CHECK(m.is_at(3));
  CHECK(r->damaged.size() == 1);
  CHECK(contains(r->warning, "there is no state file"));
  // Those of another list are none of this one's.
  m.at(9), test_saver<>({}, {}, fs).save(m.list, "d/other", 9);
  fs.remove("d/checkpoint");
  CHECK(next.restore_latest(m.list, "d", {.restore_newest = true, .prefix = "m"})->path == "d/m-3.ckpt");
  CHECK(m.is_at(3));
  CHECK(next.restore_latest(m.list, "d", {.restore_newest = true})->path == "d/other-9.ckpt");
  fs.remove("d/other-9.ckpt");
  // A name that begins alike is another list's, too.
  for (const char* other : {"d/m2", "d/m-2"}) {
    m.at(9), test_saver<>({}, {}, fs).save(m.list, other, 9);
    fs.remove("d/checkpoint");
    CHECK(next.restore_latest(m.list, "d", {.restore_newest = true, .prefix = "m"})->path == "d/m-3.ckpt");
    CHECK(
        next.restore_latest(m.list, "d", {.restore_newest = true, .prefix = std::string(file_name_of(other))})->step ==
        9);
    fs.remove(std::string(other) + "-9.ckpt");
  }
  for (int i = 1; i <= 3; ++i) fs.bytes(text("d/m-", i, ".ckpt")).clear();
  CHECK(contains(message([&] { next.restore_latest(m.list, "d"); }, status::failed_precondition),
                 "None of them is intact. Set restore_newest"));
  message([&] { next.restore_latest(m.list, "d", {.restore_newest = true}); }, status::data_loss);
  CHECK(!next.restore_latest(m.list, "elsewhere", {.restore_newest = true}));
}

TEST_CASE("checkpoints of another codec without a state file are refused; training does not begin anew beside them") {
  for (const std::string_view proof : detail::all_proofs) {
    const faulty_files fs;
    model m;
    fs.make_directory("d");
    publish(fs, text("d/m-100", proof), "anything");
    test_saver<> s({}, {}, fs);
    if (proof == ".ckpt") continue;  // its own: one that is damaged
    const auto said = message([&] { s.restore_latest(m.list, "d", {.prefix = "m"}); }, status::failed_precondition);
    CHECK(contains(said, text("what it holds (\"m-100", proof, "\") is of another codec than \"")));
    CHECK_THROWS_AS(s.restore_latest(m.list, "d", {.restore_newest = true, .prefix = "m-"}), failed_precondition);
    CHECK(!s.restore_latest(m.list, "d", {.prefix = "other"}));
    CHECK(!s.restore_latest(m.list, "d"));  // whose file that is cannot be known
    // Another process is about to list it.
    publish(fs, "d/checkpoint.gradus-tmp-1", text("model_checkpoint_path: \"m-100", proof, "\"\n"));
    CHECK(!s.restore_latest(m.list, "d", {.prefix = "m"}));
  }
}

TEST_CASE("saver: whatever bit of a state file flips, it is restored as it was or refused, and never a step less") {
  const faulty_files fs;
  model m;
  test_saver<> s({}, {}, fs);
  for (int i = 1; i <= 3; ++i) m.at(i), s.save(m.list, "d/m", i);
  const auto good = fs.bytes("d/checkpoint");
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    fs.bytes("d/checkpoint") = good;
    fs.bytes("d/checkpoint")[bit / 8] ^= std::byte(static_cast<unsigned char>(1 << bit % 8));
    try {
      const auto r = s.restore_latest(m.list, "d");
      CHECK(r->step == 3);
    } catch (const data_loss&) {
      ++refused;
    }
  }
  CHECK(refused > 7 * good.size());
}

TEST_CASE("saver: a clock that is set back lets no checkpoint survive that should go, in a run and over a restart") {
  for (const bool restart : {false, true})
    for (const double back : {0.5, 7200.0, 2 * 365.0 * 24 * 3600}) {
      const faulty_files fs;
      const hand_clock clock;
      *clock.time = 1.8e9;
      model m;
      const saver_options keep{.max_to_keep = 2, .keep_checkpoint_every_n_hours = 1};
      std::optional<test_saver<>> s(std::in_place, keep, flat_binary{}, fs, clock);
      int step = 0;
      for (; step < 4; *clock.time += 60) s->save(m.list, "m", ++step);
      *clock.time -= back;
      if (restart) s.emplace(keep, flat_binary{}, fs, clock);
      for (; step < 10; *clock.time += 60) s->save(m.list, "m", ++step);
      CHECK(fs.files() == names{"checkpoint", "m-10.ckpt", "m-9.ckpt"});
      // And the next hour's survives as ever.
      *clock.time += 3600;
      for (; step < 13; *clock.time += 60) s->save(m.list, "m", ++step);
      CHECK(fs.files() == names{"checkpoint", "m-11.ckpt", "m-12.ckpt", "m-13.ckpt"});
    }
}

TEST_CASE("saver: two savers in one directory do not tear each other's files") {
  const faulty_files fs;
  model m;
  test_saver<> a({.max_to_keep = 2}, {}, fs), b({.max_to_keep = 2}, {}, fs);
  for (int i = 1; i <= 6; ++i) {
    m.at(i);
    (i % 2 != 0 ? a : b).save(m.list, "d/m", i);
    model found;
    CHECK(a.restore_latest(found.list, "d")->step == i);
    CHECK(found.is_at(i));
  }
}

// --- the real disk ---

TEST_CASE("saver: SIGKILL on the real disk") {
  const temp_dir dir;
  std::int64_t reached = 0;
  for (int round = 0; round < 12; ++round) {
    int pipe_ends[2];
    REQUIRE(::pipe(pipe_ends) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(pipe_ends[0]);
      model m(20000);
      saver<> s({.max_to_keep = 2});
      const auto r = s.restore_latest(m.list, dir.path());
      for (std::int64_t step = r ? r->step + 1 : 1;; ++step) {
        m.at(step);
        s.save(m.list, dir / "model", step);
        if (::write(pipe_ends[1], &step, sizeof step) != sizeof step) ::_exit(1);
      }
    }
    ::close(pipe_ends[1]);
    std::int64_t acknowledged = 0, step = 0;
    for (int i = 0; i <= round % 4; ++i)
      if (::read(pipe_ends[0], &step, sizeof step) == sizeof step) acknowledged = step;
    volatile int spin = 0;  // somewhere into the next save
    while (spin < round * 20000) spin = spin + 1;
    ::kill(child, SIGKILL);
    while (::read(pipe_ends[0], &step, sizeof step) == sizeof step) acknowledged = step;
    ::close(pipe_ends[0]);
    int how = 0;
    ::waitpid(child, &how, 0);
    REQUIRE(WIFSIGNALED(how));
    model found(20000);
    const auto r = saver<>().restore_latest(found.list, dir.path());
    REQUIRE(r);
    CHECK(r->step >= acknowledged);
    CHECK(r->step <= acknowledged + 1);
    CHECK(acknowledged > reached);
    CHECK(found.is_at(r->step));
    reached = acknowledged;
  }
}

TEST_CASE("saver: a directory that cannot be is refused") {
  const temp_dir dir;
  publish(posix{}, dir / "file", "");
  model m;
  saver<> s;
  const auto text = message([&] { s.save(m.list, dir / "file/run/model", 1); }, status::not_found);
  CHECK(contains(text, "cannot create the directory \"" + dir / "file/run"));
  CHECK(contains(text, "a part of the path is a file where a directory is needed: choose another path"));
}

TEST_CASE("saver: a directory moved elsewhere still restores") {
  const temp_dir dir;
  model m;
  m.at(3);
  saver<>().save(m.list, dir / "a/model", 3);
  REQUIRE(std::rename((dir / "a").c_str(), (dir / "b").c_str()) == 0);
  m.at(4);
  CHECK(saver<>().restore_latest(m.list, dir / "b")->step == 3);
  CHECK(m.is_at(3));
}

TEST_CASE("saver: several threads save, rank, attach and ask through one saver, and each save is kept") {
  const temp_dir dir;
  saver<> one({.max_to_keep = 60});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      model m;
      for (std::int64_t step = t; step < 48; step += 4) {
        m.at(step);
        one.save(m.list, dir / "model", step);
        one.attach(".meta", {std::byte(t)});
        (void)one.measured(static_cast<double>(step));
        if (one.checkpoints().empty()) std::abort();
      }
    });
  for (auto& t : threads) t.join();
  const auto listed = read_state_file(posix{}, dir.path())->all;
  REQUIRE(listed.size() == 48);
  for (const std::string& name : listed) {
    model m;
    const auto r = one.restore(m.list, dir / name);
    CHECK(m.is_at(r.step));
    CHECK(name == "model-" + std::to_string(r.step) + ".ckpt");
  }
}

TEST_CASE("saver: a copy keeps the list, and both go on") {
  const temp_dir dir;
  model m;
  saver<> one;
  m.at(1), one.save(m.list, dir / "model", 1);
  saver<> two = one;
  m.at(2), two.save(m.list, dir / "model", 2);
  CHECK(two.checkpoints() == std::vector<std::string>{"model-1.ckpt", "model-2.ckpt"});
  saver<> three = std::move(two);
  m.at(3), three.save(m.list, dir / "model", 3);
  CHECK(three.checkpoints().size() == 3);
}

TEST_CASE("saver: a directory that was moved away and made again gets a list of its own, and no other run's") {
  const temp_dir dir;
  const std::string run = dir / "run", old = dir / "old";
  const auto listed = [](const std::string& directory) { return read_state_file(posix{}, directory)->all; };
  using names_type = std::vector<std::string>;
  model m;
  saver<> s;
  const auto alone = hold_directory(posix{}, run);
  s.share(alone);
  m.at(1), s.save(m.list, run + "/model", 1);
  m.at(2), s.save(m.list, run + "/model", 2);

  // Only the lock file goes: the list is the same.
  REQUIRE(posix{}.remove(run + "/.gradus-lock") == 0);
  m.at(3), s.save(m.list, run + "/model", 3);
  CHECK(listed(run) == names_type{"model-1.ckpt", "model-2.ckpt", "model-3.ckpt"});
  CHECK_THROWS_AS(hold_directory(posix{}, run), failed_precondition);
  REQUIRE(posix{}.remove(run + "/.gradus-lock") == 0);
  CHECK_FALSE(s.measured(0.5).path.empty());

  // The directory goes, and nobody makes it again: the save fails, and a later one may succeed.
  REQUIRE(posix{}.rename(run, old) == 0);
  m.at(4);
  CHECK_THROWS_AS(s.save(m.list, run + "/model", 4), not_found);
  REQUIRE(posix{}.make_directory(run) == 0);
  CHECK_THROWS_AS(s.measured(0.5), failed_precondition);  // nothing is there to be ranked
  s.save(m.list, run + "/model", 4);
  CHECK(listed(run) == names_type{"model-4.ckpt"});
  CHECK(listed(old).size() == 3);

  // Another run has it, and saves there under the same names.
  REQUIRE(posix{}.rename(run, dir / "older") == 0);
  {
    saver<> other;
    const auto of_other = hold_directory(posix{}, run);
    other.share(of_other);
    m.at(4), other.save(m.list, run + "/model", 4);
    m.at(5);
    CHECK(message([&] { s.save(m.list, run + "/model", 5); }, status::failed_precondition)
              .find("to be the only one that writes into") != std::string::npos);
  }
  for (int twice = 0; twice < 2; ++twice)
    CHECK(message([&] { s.save(m.list, run + "/model", 5); }, status::failed_precondition) ==
          text("expected the checkpoints of this run in \"", run,
               "\", but the directory was removed or moved away "
               "meanwhile and made again, and another run has saved \"model-4.ckpt\" there; go on from that one with a "
               "new trainer, or choose another directory"));
  CHECK_THROWS_AS(s.forget(run, {"model-4.ckpt"}), failed_precondition);
  CHECK(listed(run) == names_type{"model-4.ckpt"});
}
