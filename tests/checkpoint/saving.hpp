// What tests of savers share: a model whose state is a function of its step, a clock that a hand turns.
#pragma once
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gradus/base/error.hpp"
#include "gradus/base/state.hpp"

namespace saving {
using namespace gradus;
using names = std::vector<std::string>;

struct hand_clock {
  std::shared_ptr<double> time = std::make_shared<double>(1000.0);
  double now() const { return *time; }
  double elapsed() const { return *time; }
};

struct bytes_blob final : blob {
  std::vector<std::byte> value;
  void save(std::vector<std::byte>& out) const override { out = value; }
  void load(std::span<const std::byte> in) override { value.assign(in.begin(), in.end()); }
};

// A model whose state at a step is a function of the step, so that any mixture of two steps shows.
struct model {
  explicit model(std::size_t n = 5) : w(n) {
    list.tensor("w", {static_cast<std::int64_t>(n)}, std::span<float>(w));
    list.scalar("global_step", step);
    list.dynamic("position", position);
  }
  model(const model&) = delete;
  void at(std::int64_t s) {
    step = s;
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(s) * 0.5f + static_cast<float>(i);
    position.value.assign(static_cast<std::size_t>(s % 7), std::byte(static_cast<unsigned char>(s)));
  }
  bool is_at(std::int64_t s) const {
    model other(w.size());
    other.at(s);
    return other.step == step && other.w == w && other.position.value == position.value;
  }
  std::vector<float> w;
  std::int64_t step = 0;
  bytes_blob position;
  state_list list;
};

inline bool contains(const std::string& s, std::string_view part) { return s.find(part) != std::string::npos; }

// What `f` raises, which is of this kind.
template <class F>
std::string message(F&& f, status kind) {
  try {
    f();
  } catch (const error& e) {
    CHECK_MESSAGE(e.kind() == kind, e.what());
    return e.what();
  }
  FAIL_CHECK("no error");
  return {};
}

}  // namespace saving
