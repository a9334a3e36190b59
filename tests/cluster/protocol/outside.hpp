// What the machines' tests see of them: every message as a line, and the log that they write.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gradus/cluster/protocol/message.hpp"

namespace protocol_tests {
using namespace gradus;
using namespace gradus::detail;

struct seen_outside final : protocol_outside {
  std::vector<std::string> said, orders;
  std::vector<std::vector<std::byte>> records;

  void send(const protocol_message& m) override {
    std::string s = text(kind_name(m.kind), " to ", m.to, ": i", m.incarnation, " s", m.sequence, " a", m.about);
    for (const contribution_id& id : m.ids) s += text(" {", id.worker, " ", id.incarnation, " ", id.sequence, "}");
    for (const wire_slice& p : m.parts) s += text(" ", p.name, "[", p.count(), "]");
    said.push_back(s);
  }
  std::uint64_t write(std::span<const std::byte> record) override {
    records.emplace_back(record.begin(), record.end());
    return records.size();
  }
  void ordered(const order_entry& e) override { orders.push_back(text(e.order, ": ", e.worker, ".", e.update)); }
  // What was said since the last call.
  std::vector<std::string> take() { return std::exchange(said, {}); }
};
using lines = std::vector<std::string>;
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
