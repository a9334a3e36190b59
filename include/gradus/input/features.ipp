// The bodies of features.hpp.
#pragma once
#include "../base/body.hpp"
#include "features.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::string_view text_list::operator[](std::size_t i) const {
  const std::size_t first = i == 0 ? 0 : ends_[i - 1];
  return std::string_view(bytes_).substr(first, ends_[i] - first);
}

GRADUS_BODY void text_list::push_back(std::string_view s) {
  bytes_ += s;
  ends_.push_back(bytes_.size());
}

GRADUS_BODY void text_list::cut(std::size_t n) {
  ends_.resize(n);
  bytes_.resize(n == 0 ? 0 : ends_.back());
}

GRADUS_BODY std::size_t feature::size() const {
  return kind == feature_kind::float32 ? floats.size() : kind == feature_kind::int64 ? ints.size() : texts.size();
}

GRADUS_BODY std::size_t feature::begin(std::int64_t r) const {
  return static_cast<std::size_t>(ragged() ? splits[static_cast<std::size_t>(r)] : r * count(dims));
}

GRADUS_BODY feature& features::add(feature f) {
  if (find(f.name) != nullptr) raise(status::already_exists, text("there is a feature \"", f.name, "\" already"));
  const auto has = static_cast<std::int64_t>(f.size());
  if (f.ragged()) {
    if (static_cast<std::int64_t>(f.splits.size()) != rows_ + 1 || f.splits.front() != 0 || f.splits.back() != has ||
        !std::is_sorted(f.splits.begin(), f.splits.end()))
      raise(status::invalid_argument,
            text("feature \"", f.name, "\": its splits do not divide ", has, " values among ", rows_, " examples"));
  } else if (has != rows_ * count(f.dims)) {
    raise(status::invalid_argument, text("feature \"", f.name, "\": expected ", rows_, " examples of ", to_text(f.dims),
                                         ", found ", has, " values"));
  }
  if (!f.places.empty() && f.places.size() != f.size())
    raise(status::invalid_argument,
          text("feature \"", f.name, "\": ", f.places.size(), " places for ", has, " values"));
  list_.push_back(std::move(f));
  return list_.back();
}

GRADUS_BODY const feature* features::find(std::string_view name) const {
  for (const auto& f : list_)
    if (f.name == name) return &f;
  return nullptr;
}

GRADUS_BODY const feature& features::operator[](std::string_view name) const {
  if (const feature* f = find(name)) return *f;
  std::string names;
  for (const auto& f : list_) names += text(names.empty() ? "" : ", ", f.name);
  raise(status::not_found, text("no feature is called \"", name, "\"; there are ", names.empty() ? "none" : names));
}

}  // namespace gradus
