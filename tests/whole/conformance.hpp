// Every rule of the library through the suite that users run theirs through. In several files, for compile time.
#pragma once
#include <doctest/doctest.h>

#include <gradus/testing/conform.hpp>

namespace {
template <class Rule>
void conforms(const Rule& rule, const gradus::testing::conform_options& options = {}) {
  const auto failures = gradus::testing::conform(rule, options);
  for (const auto& f : failures) MESSAGE(f);
  CHECK(failures.empty());
}
}  // namespace
