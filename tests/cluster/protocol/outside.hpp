// What the machines' tests see of them: every message as a line, and the log that they write.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "gradus/cluster/protocol/message.hpp"

namespace protocol_tests {
using namespace gradus;
using namespace gradus::detail;

struct seen_outside final : protocol_outside {
  std::vector<std::string> said, orders;
  std::vector<int> lent = std::vector<int>(8);  // by node: what is borrowed of it
  int changes = 0;                              // of values
  std::vector<std::vector<std::byte>> records;

  void send(const protocol_message& m) override {
    std::string s = text(kind_name(m.kind), " to ", m.to, ": i", m.incarnation, " s", m.sequence, " a", m.about);
    for (const contribution_id& id : m.ids) s += text(" {", id.worker, " ", id.incarnation, " ", id.sequence, "}");
    const bool shows = m.kind == message_kind::measured || m.kind == message_kind::settled;
    for (const wire_slice& p : m.parts) s += text(" ", p.name, "[", shows ? numbers(p) : text(p.count()), "]");
    said.push_back(s);
  }
  static std::string numbers(const wire_slice& p) {
    std::string s;
    for (std::size_t i = 0; i < p.count(); ++i) {
      double x = 0;
      std::memcpy(&x, p.bytes.data() + i * sizeof x, sizeof x);
      s += text(i == 0 ? "" : " ", x);
    }
    return s;
  }
  std::uint64_t write(std::span<const std::span<const std::byte>> pieces) override {
    auto& record = records.emplace_back();
    for (const auto p : pieces) record.insert(record.end(), p.begin(), p.end());
    return records.size();
  }
  void borrowed(std::uint32_t node) override { ++lent[node]; }
  void returned(std::uint32_t node) override { --lent[node]; }
  void values_change() override { ++changes; }
  void ordered(const order_entry& e) override {
    orders.push_back(text(e.order, ": ", e.worker, ".", e.number, " of ", e.read));
  }
  // What was said since the last call.
  std::vector<std::string> take() { return std::exchange(said, {}); }
};
using lines = std::vector<std::string>;

// Lists as a message has them, named by their shard.
struct lists {
  std::vector<std::vector<double>> numbers;
  std::vector<std::string> names;
  std::vector<wire_slice> slices;

  explicit lists(std::vector<std::vector<double>> all) : numbers(std::move(all)) {
    for (std::size_t k = 0; k < numbers.size(); ++k) names.push_back(std::to_string(k));
    for (std::size_t k = 0; k < numbers.size(); ++k)
      slices.push_back({names[k], float64, 0, std::as_bytes(std::span(numbers[k]))});
  }
  lists(const lists&) = delete;
};
}  // namespace protocol_tests

namespace doctest {
template <>
struct StringMaker<std::vector<std::string>> {
  static String convert(const std::vector<std::string>& v) {
    std::string s;
    for (const auto& one : v) s += "\n    " + one;
    return s.c_str();
  }
};
}  // namespace doctest
