// The bodies of retention.hpp.
#pragma once
#include "../base/body.hpp"
#include "retention.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void check(const saver_options& o) {
  if (o.max_to_keep < 0)
    raise(status::invalid_argument,
          text("max_to_keep is ", o.max_to_keep, "; give how many checkpoints to keep, or 0 for all"));
  if (!(o.keep_checkpoint_every_n_hours > 0))
    raise(status::invalid_argument, text("keep_checkpoint_every_n_hours is ", o.keep_checkpoint_every_n_hours,
                                         "; give a positive number of hours"));
  if (o.best.count < 0)
    raise(status::invalid_argument, text("keep_best::count is ", o.best.count, "; give how many to keep, or 0"));
}

GRADUS_BODY retention::retention(const saver_options& options, double now)
    : options_(options), next_keep_(now + options.keep_checkpoint_every_n_hours * 3600), latest_(now) {}

GRADUS_BODY retention retention::with(const std::string& name, double now, std::optional<double> metric) const {
  retention next = *this;
  next.set_back(now);
  auto& s = next.state_;
  for (std::size_t i = s.all.size(); i-- > 0;)
    if (s.all[i] == name) next.forget(i);
  std::erase(s.superseded, name);
  std::erase_if(s.best, [&](const auto& b) { return b.first == name; });
  if (options_.max_to_keep == 0) s.all.clear(), s.timestamps.clear();
  s.newest = name;
  s.all.push_back(name);
  s.timestamps.push_back(now);
  if (metric && options_.best.count > 0) next.rank(name, *metric);
  if (options_.max_to_keep != 0)
    while (s.all.size() > static_cast<std::size_t>(options_.max_to_keep)) {
      const auto oldest = s.all.front();
      const double made = s.timestamps.front();
      next.forget(0);
      if (s.keeps(oldest)) {
        // It is one of the best: it is not about to be deleted, so it does not use up an hour mark either.
      } else if (made > next.next_keep_) {
        next.next_keep_ += options_.keep_checkpoint_every_n_hours * 3600;
      } else {
        s.superseded.push_back(oldest);
      }
      if (!options_.trim) break;
    }
  return next;
}

GRADUS_BODY retention retention::measured(double metric) const {
  retention next = *this;
  std::erase_if(next.state_.best, [&](const auto& b) { return b.first == state_.newest; });
  if (options_.best.count > 0) next.rank(state_.newest, metric);
  return next;
}

GRADUS_BODY void retention::supersede(const std::string& name) {
  for (std::size_t i = state_.all.size(); i-- > 0;)
    if (state_.all[i] == name) forget(i);
  std::erase_if(state_.best, [&](const auto& b) { return b.first == name; });
  state_.superseded.push_back(name);
}

GRADUS_BODY void retention::set_back(double now) {
  if (now < latest_) {
    next_keep_ -= latest_ - now;
    for (double& t : state_.timestamps) t = std::min(t, now);
  }
  latest_ = now;
}

GRADUS_BODY void retention::forget(std::size_t i) {
  state_.all.erase(state_.all.begin() + static_cast<std::ptrdiff_t>(i));
  state_.timestamps.erase(state_.timestamps.begin() + static_cast<std::ptrdiff_t>(i));
}

GRADUS_BODY void retention::rank(const std::string& name, double metric) {
  const auto better = [&](double a, double b) {
    if (!(a - a == 0)) return false;
    return !(b - b == 0) || (options_.best.higher_is_better ? a > b : a < b);
  };
  auto& best = state_.best;
  const auto at = std::find_if(best.begin(), best.end(), [&](const auto& b) { return better(metric, b.second); });
  best.insert(at, {name, metric});
  while (best.size() > static_cast<std::size_t>(options_.best.count)) {
    const auto worst = best.back().first;
    best.pop_back();
    if (options_.max_to_keep != 0 && !state_.keeps(worst)) state_.superseded.push_back(worst);
  }
}

}  // namespace gradus
