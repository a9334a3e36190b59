#include <gradus/summary/tensorflow_ops.hpp>

#include <doctest/doctest.h>

#include <set>

using namespace gradus::detail;

// What the formulas mean is checked by running them: tests/whole/tensorflow_graph.cpp.
TEST_CASE("tensorflow_ops: a name stands once, and an op has a formula or a reason") {
  std::set<std::string_view> names, written;
  for (const auto& f : tensorflow_formulas) {
    CHECK_MESSAGE(names.insert(f.name).second, f.name);
    CHECK(find_tensorflow_formula(f.name) == &f);
    CHECK(find_tensorflow_absence(f.name).empty());
  }
  for (const auto& a : tensorflow_absences) {
    CHECK_MESSAGE(names.insert(a.name).second, a.name);
    CHECK(find_tensorflow_absence(a.name) == a.reason);
    CHECK(!a.reason.empty());
  }
  for (const auto& op : tensorflow_ops) {
    CHECK_MESSAGE(written.insert(op.name).second, op.name);
    CHECK(find_tensorflow_op(op.name) == &op);
  }
  CHECK(find_tensorflow_formula("Apply") == nullptr);
  CHECK(find_tensorflow_op("Mul") == nullptr);  // as most ops: T, and a result of it
  CHECK(!find_tensorflow_absence("HostCall").empty());
}
