// The bodies of graph_digest.hpp.
#pragma once
#include <bit>

#include "../base/body.hpp"
#include "graph_digest.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// FNV-1a, 64 bits.
class running_digest {
public:
  void number(std::uint64_t n) {
    for (int i = 0; i < 8; ++i) byte(static_cast<unsigned char>(n >> (8 * i)));
  }
  void word(std::string_view s) {
    number(s.size());
    for (const char c : s) byte(static_cast<unsigned char>(c));
  }
  std::uint64_t value() const { return value_; }

private:
  std::uint64_t value_ = 0xcbf29ce484222325;

  void byte(unsigned char b) { value_ = (value_ ^ b) * 0x100000001b3; }
};

GRADUS_BODY std::uint64_t digest_of(const graph_view& g) {
  running_digest d;
  const auto signed_number = [&d](int n) { d.number(static_cast<std::uint64_t>(static_cast<std::int64_t>(n))); };
  for (int i = 0; i < g.size; ++i) {
    const node& n = g.nodes[i];
    d.word(n.op->name);
    if (const frozen_weights* w = n.op->frozen) {
      for (std::int64_t k = 0; k < count(w->dims); ++k) signed_number(w->codes[k]);
      for (int k = 0; k < w->channels; ++k)
        d.number(std::bit_cast<std::uint32_t>(w->scales[k])), d.number(std::bit_cast<std::uint32_t>(w->bias[k]));
    }
    d.number(static_cast<std::uint64_t>(n.type));
    signed_number(n.dims.rank);
    for (int k = 0; k < n.dims.rank; ++k) signed_number(n.dims.dims[k]);
    signed_number(n.inputs), signed_number(n.controls), signed_number(n.attrs);
    for (int k = 0; k < n.inputs + n.controls; ++k) signed_number(g.edges[n.first + k]);
    for (int k = 0; k < n.attrs; ++k) signed_number(g.ints[n.attr + k]);
  }
  for (int i = 0; i < g.expression_count; ++i) {
    const expression& e = g.expressions[i];
    signed_number(e.inputs), signed_number(e.steps), signed_number(e.loops);
    d.number(static_cast<std::uint64_t>(e.type)), d.number(static_cast<std::uint64_t>(e.result_type));
    for (int k = 0; k < e.loops; ++k) signed_number(e.extent[k]);
    for (int k = 0; k < e.inputs; ++k) d.number(e.varies[k]), d.number(static_cast<std::uint64_t>(e.operand_type[k]));
    for (int k = 0; k < e.steps; ++k) {
      d.word(e.op[k]->name);
      for (const unsigned char a : e.arg[k]) d.number(a);
    }
  }
  return d.value();
}

}  // namespace gradus::detail
