#include "gradus/checkpoint/retention.hpp"

#include <cmath>

#include "saving.hpp"

using namespace gradus;
using saving::message, saving::names;

namespace {

// A retention with a clock that a hand turns, and a directory of names.
struct kept {
  explicit kept(const saver_options& options) : options_(options), list_(options, 0) {}

  // Saves `name` at `hours`; what is deleted for it.
  names save(const std::string& name, double hours, std::optional<double> metric = {}) {
    list_ = list_.with(name, hours * 3600, metric);
    return std::exchange(list_.state().superseded, {});
  }
  // The process starts again, and takes up the list.
  void restart(double hours) {
    retention next(options_, hours * 3600);
    next.state() = list_.state();
    list_ = next;
  }
  const names& all() const { return list_.state().all; }
  names best() const {
    names out;
    for (const auto& [name, metric] : list_.state().best) out.push_back(name);
    return out;
  }
  retention& list() { return list_; }

private:
  saver_options options_;
  retention list_;
};

}  // namespace

TEST_CASE("retention: the newest n, in the order of saving; the same name stands once") {
  kept k({.max_to_keep = 3});
  CHECK(k.save("a", 0).empty());
  CHECK(k.save("b", 0).empty());
  CHECK(k.save("c", 0).empty());
  CHECK(k.save("d", 0) == names{"a"});
  CHECK(k.save("b", 0).empty());  // is the newest again
  CHECK(k.all() == names{"c", "d", "b"});
  CHECK(k.list().state().newest == "b");
  CHECK(k.save("e", 0) == names{"c"});
  CHECK(k.list().state().timestamps.size() == 3);
}

TEST_CASE("retention: with 0 nothing is tracked or deleted, and the newest is listed") {
  kept k({.max_to_keep = 0});
  for (const char* name : {"a", "b", "c"}) {
    CHECK(k.save(name, 1).empty());
    CHECK(k.all() == names{name});
  }
  kept best({.max_to_keep = 0, .best = {.count = 1}});
  CHECK(best.save("a", 1, 0.5).empty());
  CHECK(best.save("b", 1, 0.9).empty());  // "a" is no longer among the best, and stays
  CHECK(best.best() == names{"b"});
}

TEST_CASE("retention: a longer list that was taken up loses one per save, or all at once with trim") {
  for (const bool trim : {false, true}) {
    kept k({.max_to_keep = 2, .trim = trim});
    for (const char* name : {"a", "b", "c", "d"}) {
      k.list().state().all.push_back(name);
      k.list().state().timestamps.push_back(0);
    }
    CHECK(k.save("e", 0) == (trim ? names{"a", "b", "c"} : names{"a"}));
    CHECK(k.save("f", 0) == (trim ? names{"d"} : names{"b"}));
    CHECK(k.all() == (trim ? names{"e", "f"} : names{"c", "d", "e", "f"}));
  }
}

TEST_CASE("retention: one in n hours survives being superseded, counted from the start of the process") {
  kept k({.max_to_keep = 1, .keep_checkpoint_every_n_hours = 2});
  CHECK(k.save("1h", 1).empty());
  CHECK(k.save("2h", 2) == names{"1h"});
  CHECK(k.save("3h", 3) == names{"2h"});  // exactly at the mark is not later than it
  CHECK(k.save("3.5h", 3.5).empty());     // "3h" is the first after the mark of 2; the next is 4
  CHECK(k.save("9h", 9) == names{"3.5h"});
  CHECK(k.save("9.5h", 9.5).empty());  // "9h" is later than 4; a mark moves on by 2 at a time
  CHECK(k.save("9.6h", 9.6).empty());  // "9.5h" than 6
  CHECK(k.save("9.7h", 9.7).empty());  // "9.6h" than 8
  CHECK(k.save("9.8h", 9.8) == names{"9.7h"});
  CHECK(k.all() == names{"9.8h"});
  k.restart(11);  // the first mark is now at 13
  CHECK(k.save("12h", 12) == names{"9.8h"});
  CHECK(k.save("14h", 14) == names{"12h"});
  CHECK(k.save("15h", 15).empty());
}

TEST_CASE("retention: the best m by a metric are kept beside the newest") {
  kept k({.max_to_keep = 2, .best = {.count = 2}});
  CHECK(k.save("a", 0, 0.5).empty());
  CHECK(k.save("b", 0, 0.9).empty());
  CHECK(k.save("c", 0, 0.7) == names{"a"});  // neither new nor best any more
  CHECK(k.best() == names{"b", "c"});
  CHECK(k.all() == names{"b", "c"});
}

TEST_CASE("retention: what leaves the best is deleted unless it is new, and the other way round") {
  kept k({.max_to_keep = 1, .best = {.count = 1}});
  CHECK(k.save("a", 0, 0.9).empty());
  CHECK(k.save("b", 0, 0.5).empty());              // "a" is the best
  CHECK(k.save("c", 0, 0.7) == names{"b"});        // "a" stays
  CHECK(k.save("d", 0, 0.95) == names{"a", "c"});  // the new best
  CHECK(k.best() == names{"d"});
  CHECK(k.save("e", 0).empty());  // without a metric it is only new
  CHECK(k.save("f", 0, std::nan("")) == names{"e"});
  CHECK(k.best() == names{"d"});
  CHECK(k.save("d", 0, 0.1) == names{"f"});  // saved again, with its new metric
  CHECK(k.list().state().best == std::vector<std::pair<std::string, double>>{{"d", 0.1}});
}

TEST_CASE("retention: lower is better; equal metrics keep the earlier; one that is not finite is the worst") {
  kept k({.max_to_keep = 10, .best = {.count = 3, .higher_is_better = false}});
  k.save("nan", 0, std::nan(""));
  k.save("3", 0, 3);
  k.save("-inf", 0, -std::numeric_limits<double>::infinity());
  k.save("1", 0, 1);
  CHECK(k.best().front() == "1");
  CHECK(k.best()[1] == "3");
  k.save("also 3", 0, 3);
  CHECK(k.best() == names{"1", "3", "also 3"});
  k.save("a third 3", 0, 3);
  CHECK(k.best() == names{"1", "3", "also 3"});
}

TEST_CASE("retention: one of the best uses up no hour mark") {
  kept k({.max_to_keep = 1, .keep_checkpoint_every_n_hours = 1, .best = {.count = 1}});
  k.save("a", 2, 0.9);
  k.save("b", 3, 0.1);                 // "a" leaves the list, but it is not about to be deleted
  CHECK(k.save("c", 4, 0.2).empty());  // "b" is kept for its hour
}

TEST_CASE("retention: what is replaced is superseded") {
  kept k({.max_to_keep = 5, .best = {.count = 1}});
  k.save("a", 0, 1);
  k.save("b", 0);
  k.list().supersede("a");
  CHECK(k.all() == names{"b"});
  CHECK(k.best().empty());
  CHECK(k.list().state().superseded == names{"a"});
  k.list() = k.list().with("a", 0, {});  // and written again before it was deleted
  CHECK(k.list().state().superseded.empty());
}

TEST_CASE("saver_options: what means nothing is refused") {
  CHECK(message([] { check(saver_options{.max_to_keep = -1}); }, status::invalid_argument) ==
        "max_to_keep is -1; give how many checkpoints to keep, or 0 for all");
  CHECK(message([] { check(saver_options{.keep_checkpoint_every_n_hours = std::nan("")}); },
                status::invalid_argument) == "keep_checkpoint_every_n_hours is nan; give a positive number of hours");
  CHECK(message([] { check(saver_options{.best = {.count = -2}}); }, status::invalid_argument) ==
        "keep_best::count is -2; give how many to keep, or 0");
  check(saver_options{});
}
