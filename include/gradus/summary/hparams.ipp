// The bodies of hparams.hpp.
#pragma once
#include "../base/body.hpp"
#include "../store/wire.hpp"
#include "hparams.hpp"
#include "tag.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void hparam_fields(wire_writer& w, const hparam_value& v) {
  switch (v.value.index()) {
  case 0: w.bytes(3, utf8_text(std::get<0>(v.value))); break;
  case 1: w.boolean(4, std::get<1>(v.value)); break;
  default: w.float64(2, std::get<2>(v.value)); break;
  }
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY summary_values hparams_experiment(const hparams_experiment_info& e) {
  return detail::hparams_summary("_hparams_/experiment", [&](wire_writer& data) {
    data.message(2, [&](wire_writer& w) {
      w.bytes_if(1, utf8_text(e.description));
      w.bytes_if(2, utf8_text(e.user));
      w.float64_if(3, e.time_created_secs);
      for (const auto& h : e.hparams)
        w.message(4, [&](wire_writer& info) {
          info.bytes(1, utf8_text(h.name));
          info.bytes_if(2, utf8_text(h.display_name));
          info.bytes_if(3, utf8_text(h.description));
          const auto type = !h.values.empty() ? h.values.front().value.index() + 1 : h.interval ? 3 : h.type.index();
          info.integer_if(4, static_cast<std::int64_t>(type));
          if (!h.values.empty())
            info.message(5, [&](wire_writer& list) {
              for (const auto& v : h.values)
                list.message(1, [&](wire_writer& value) { detail::hparam_fields(value, v); });
            });
          else if (h.interval)
            info.message(6, [&](wire_writer& interval) {
              interval.float64_if(1, h.interval->first);
              interval.float64_if(2, h.interval->second);
            });
        });
      for (const auto& m : e.metrics)
        w.message(5, [&](wire_writer& info) {
          info.message(1, [&](wire_writer& name) {
            name.bytes_if(1, utf8_text(m.group));
            name.bytes_if(2, utf8_text(m.tag));
          });
          info.bytes_if(3, utf8_text(m.display_name));
          info.bytes_if(4, utf8_text(m.description));
          info.integer_if(5, static_cast<std::int64_t>(m.data));
        });
      w.bytes_if(6, utf8_text(e.name));
    });
  });
}

GRADUS_BODY summary_values hparams_start(const std::map<std::string, hparam_value>& hparams, const trial_info& trial) {
  return detail::hparams_summary("_hparams_/session_start_info", [&](wire_writer& data) {
    data.message(3, [&](wire_writer& w) {
      for (const auto& [name, value] : hparams)
        w.message(1, [&](wire_writer& entry) {
          entry.bytes(1, utf8_text(name));
          entry.message(2, [&](wire_writer& v) { detail::hparam_fields(v, value); });
        });
      w.bytes_if(2, utf8_text(trial.model_uri));
      w.bytes_if(3, utf8_text(trial.monitor_url));
      w.bytes_if(4, utf8_text(trial.group_name));
      w.float64_if(5, trial.start_time_secs);
    });
  });
}

GRADUS_BODY summary_values hparams_end(trial_status status, double end_time_secs) {
  return detail::hparams_summary("_hparams_/session_end_info", [&](wire_writer& data) {
    data.message(4, [&](wire_writer& w) {
      w.integer_if(1, static_cast<std::int64_t>(status));
      w.float64_if(2, end_time_secs);
    });
  });
}

}  // namespace gradus
