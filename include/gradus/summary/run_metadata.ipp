// The bodies of run_metadata.hpp.
#pragma once
#include "../base/body.hpp"
#include "run_metadata.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void encode_run_metadata(std::vector<std::byte>& out, const step_times& step) {
  wire_writer w(out);
  w.message(1, [&](wire_writer& step_stats) {
    step_stats.message(1, [&](wire_writer& device) {
      device.bytes_if(1, step.device);
      const auto nanos = [](double seconds) { return static_cast<std::int64_t>(std::llround(seconds * 1e9)); };
      for (const auto& n : step.nodes)
        device.message(2, [&](wire_writer& node) {
          const std::int64_t base = nanos(step.began), start = base + nanos(n.start);
          const std::int64_t took = std::max<std::int64_t>(0, nanos(n.end) - nanos(n.start));
          node.bytes_if(1, n.name);
          node.integer_if(2, start / 1000);
          node.integer_if(4, took / 1000);
          node.integer_if(5, took / 1000);
          if (!n.op.empty()) node.bytes(8, text(n.name, " = ", n.op, "()"));
          node.integer_if(9, start / 1000);
          node.integer_if(10, n.thread);
          node.integer_if(13, start);
          node.integer_if(15, took);
          node.integer_if(16, took);
          node.integer_if(17, start);
        });
    });
  });
}

}  // namespace gradus
