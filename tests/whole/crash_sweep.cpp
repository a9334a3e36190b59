// one thread: saves in the background are seen in checkpoint/background and whole/background_training
// costs: 300
// Every codec, saved in every way, killed at every operation on its files, and without power at every operation: the
// next process finds the last acknowledged step or the one after it, whole, and can go on. GRADUS_LONG visits all,
// an ordinary run some of each.
#include <doctest/doctest.h>

#include <cstdlib>

#include "../checkpoint/all_codecs.hpp"
#include "gradus/testing/faulty_files.hpp"

using namespace saving;
using gradus::testing::faulty_files;
using gradus::testing::killed;

namespace {

bool is_long() { return std::getenv("GRADUS_LONG") != nullptr; }

struct tally {
  std::size_t kills = 0, states = 0, lost = 0, torn = 0;
  std::string first_problem;
  tally& operator+=(const tally& t) {
    kills += t.kills, states += t.states, lost += t.lost, torn += t.torn;
    if (first_problem.empty()) first_problem = t.first_problem;
    return *this;
  }
};

struct run_setting {
  std::size_t elements = 5;
  std::size_t most_per_write = SIZE_MAX;  // bytes: a save of many short writes
  std::int64_t steps = 4;
  int max_to_keep = 2;
  bool repeats = false;                // each step is saved twice, the second time with other content
  std::int64_t first = 0, stride = 1;  // which operations are the last ones
  bool power = false;                  // the disks after a power failure, too
  std::size_t most_names = 10;

  std::int64_t number(std::int64_t save) const { return repeats ? (save + 1) / 2 : save; }
};

// What a process finds that comes after one that ended when `acknowledged` was safe and perhaps one more was not.
template <class F>
void judge(const codec_case<F>& c, const run_setting& with, const F& after, std::int64_t acknowledged, tally& out) {
  ++out.states;
  const auto problem = [&](std::size_t& counter, const std::string& what) {
    ++counter;
    if (out.first_problem.empty())
      out.first_problem = text(c.name, ": ", what, ", where save ", acknowledged, " was acknowledged");
  };
  model found(with.elements);
  try {
    auto s = c.make(after, {.max_to_keep = with.max_to_keep});
    const auto named = latest_checkpoint(after, "d");
    const auto r = s.restore_latest(found.list, "d");
    const std::int64_t step = r ? found.step : 0;  // which save it is of
    if (r && r->step != with.number(step)) problem(out.torn, "its step is not that of its name");
    if (step < acknowledged || step > acknowledged + 1) problem(out.lost, text("save ", step, " was found"));
    if (named != (r ? r->path : "")) problem(out.torn, "latest_checkpoint names \"" + named + "\"");
    if (r && !found.is_at(step)) problem(out.torn, text("save ", step, " was not whole"));
    const auto next = with.steps + 1;
    found.at(next);
    s.save(found.list, "d/m", with.number(next));
    for (const auto& file : after.files())
      if (is_temporary(file)) problem(out.torn, file + " was left");
    // Nor a checkpoint, or a part of one, that no list knows.
    const auto listed = read_state_file(after, "d")->all;
    for (const auto& file : after.files()) {
      const auto name = file_name_of(file);
      const bool known = name == state_file_name || std::any_of(listed.begin(), listed.end(), [&](const auto& l) {
                           const auto stem = l.substr(0, l.find('.'));
                           return name.starts_with(stem) &&
                                  (name.size() == stem.size() || name[stem.size()] == '.' || name[stem.size()] == '-');
                         });
      if (!known) problem(out.torn, file + " is of no checkpoint in the list");
    }
    model again(with.elements);
    if (!s.restore_latest(again.list, "d") || !again.is_at(next)) problem(out.lost, "the next save was lost");
  } catch (const error& e) {
    problem(out.torn, e.what());
  }
}

// A run of saves that keeps a few, ended at each operation in turn.
template <class F>
tally sweep(const codec_case<F>& c, const way_to_save& way, const run_setting& with) {
  tally out;
  bool finished = false;
  for (std::int64_t at = with.first; !finished; at += with.stride) {
    const F fs;
    fs.short_writes(with.most_per_write);
    fs.plan({.at = at, .kill = true});
    std::int64_t acknowledged = 0;
    {
      auto s = way.make(c.make(fs, {.max_to_keep = with.max_to_keep}));
      model m(with.elements);
      try {
        for (std::int64_t i = 1; i <= with.steps; ++i) {
          m.at(i);
          s->save(m.list, "d/m", with.number(i));
          s->before_step();
          m.at(1000 + i);  // training goes on at once
        }
        s->finish();
        finished = true;
      } catch (const killed&) {
      }
      while (s->next_done()) ++acknowledged;
    }
    if (finished) CHECK(acknowledged == with.steps);
    ++out.kills;
    if constexpr (std::same_as<decltype(fs.after_kill()), F>) judge(c, with, fs.after_kill(), acknowledged, out);
    if (with.power)
      fs.after_power_failure(
          [&](const faulty_files& after) {
            if constexpr (std::same_as<F, faulty_files>) judge(c, with, after, acknowledged, out);
          },
          with.most_names);
  }
  return out;
}

// A mutant forgets to sync. What it leaves is read by a process of honest files.
template <class Mutant>
tally sweep_mutant(const codec_case<Mutant>& c, const codec_case<faulty_files>& honest) {
  tally out;
  const run_setting with{.elements = 200, .steps = 2};
  bool finished = false;
  for (std::int64_t at = 0; !finished; ++at) {
    const Mutant fs;
    fs.plan({.at = at, .kill = true});
    std::int64_t acknowledged = 0;
    auto s = c.make(fs, {.max_to_keep = 2});
    model m(with.elements);
    try {
      for (std::int64_t i = 1; i <= with.steps; ++i) m.at(i), s.save(m.list, "d/m", i), acknowledged = i;
      finished = true;
    } catch (const killed&) {
    }
    fs.after_power_failure([&](const faulty_files& after) { judge(honest, with, after, acknowledged, out); }, 6);
  }
  return out;
}
struct never_syncs_files : faulty_files {
  int sync(int) const { return 0; }
};
struct never_syncs_names : faulty_files {
  int sync_directory(const std::string&) const { return 0; }
};

void report(const tally& t, std::string_view what) {
  MESSAGE(what, ": ", t.kills, " kill points, ", t.states, " disks");
  CHECK_MESSAGE(t.lost + t.torn == 0, t.lost, " lost, ", t.torn, " torn: ", t.first_problem);
}

}  // namespace

TEST_CASE("killed at any operation, by every codec and in every way") {
  tally all;
  for (const auto& c : codec_cases<faulty_files>())
    for (const auto& way : all_ways) {
      const bool forks = way.name == "fork", waits = way.name == "in place";
      // A long run takes every operation; an ordinary one, which has less time, some of each.
      std::vector<run_setting> settings;
      if (is_long()) {
        settings.push_back({.elements = 300, .most_per_write = forks ? 600u : 100u, .steps = 6});
        settings.push_back({.elements = 40, .steps = 5, .max_to_keep = 1});
        settings.push_back({.elements = 40, .steps = 6, .max_to_keep = 2, .repeats = true});
      } else {
        const std::int64_t stride = waits ? 5 : forks ? 61 : 13;
        settings.push_back({.elements = 100, .most_per_write = 250, .steps = 3, .stride = stride});
        settings.push_back({.steps = 4, .max_to_keep = 1, .repeats = true, .stride = stride});
      }
      for (const auto& with : settings) {
        const auto t = sweep(c, way, with);
        CHECK_MESSAGE(t.lost + t.torn == 0, way.name, ": ", t.first_problem);
        all += t;
      }
    }
  report(all, "all codecs, all ways");
  CHECK(all.kills >= (is_long() ? 10000u : 500u));
}

TEST_CASE("without power at any operation, by every codec") {
  tally all;
  for (const auto& c : codec_cases<faulty_files>()) {
    run_setting some{.elements = 1500, .most_per_write = 512, .steps = 4, .power = true};
    if (!is_long())
      some.elements = 200, some.steps = 3, some.repeats = true, some.first = 2, some.stride = 11, some.most_names = 5;
    auto t = sweep(c, all_ways[0], some);
    if (is_long()) t += sweep(c, all_ways[0], {.elements = 200, .steps = 6, .repeats = true, .power = true});
    CHECK_MESSAGE(t.lost + t.torn == 0, t.first_problem);
    if (is_long()) MESSAGE(c.name, ": ", t.states, " disks");
    all += t;
  }
  report(all, "all codecs");
  CHECK(all.states >= (is_long() ? 50000u : 400u));
}

TEST_CASE("the sweep notices files that are not synced, and names that are not") {
  const auto& honest = codec_cases<faulty_files>()[0];
  const auto no_file = sweep_mutant(case_of<never_syncs_files>(flat_binary{}), honest);
  CHECK(no_file.lost + no_file.torn > 0);
  const auto no_name = sweep_mutant(case_of<never_syncs_names>(flat_binary{}), honest);
  CHECK(no_name.lost > 0);
}
