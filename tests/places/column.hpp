// parity_column gives an even integer the id 0 and an odd one the id 1. A template: tests/places/places.py adds it.
#pragma once
#include "categorical_column.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

class parity_rule final : public keyed_rule {
public:
  explicit parity_rule(std::string key) : keyed_rule("parity_column", std::move(key), feature_kind::int64) {}
  std::int64_t num_buckets() const override { return 2; }

private:
  std::int64_t id_of(std::string_view) const override { return no_id; }  // its feature is int64
  std::int64_t id_of(std::int64_t v) const override { return v & 1; }
};

}  // namespace detail

inline categorical_column parity_column(std::string key) {
  return categorical_column(std::make_shared<const detail::parity_rule>(std::move(key)));
}

}  // namespace gradus
