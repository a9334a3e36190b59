// The bodies of tensor_bundle.hpp.
#pragma once
#include "../base/body.hpp"
#include "tensor_bundle.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY encoded tensor_bundle::encode(const snapshot& content) const {
  const detail::bundle_settings settings{shards, names, parts};
  return detail::bundle_encoder(settings).run(content);
}

GRADUS_BODY decoded tensor_bundle::decode(checkpoint_files& files) const {
  const detail::bundle_settings settings{shards, names, parts};
  return detail::bundle_decoder(settings, files).run();
}

GRADUS_BODY std::vector<stored_tensor> tensor_bundle::stored(snapshot content) const {
  std::deque<std::vector<std::byte>> owned;
  if (names) names->to_tensorflow(content, owned);
  const partition_map all = with_slots(parts, content);
  std::vector<stored_tensor> out;
  for (const record& r : content.records) {
    out.push_back({r.name, r.type});
    const auto part = all.find(r.name);
    if (part == all.end()) continue;
    const slice_of& s = part->second;
    out.back().name = s.full_name;
    if (detail::is_whole(s)) continue;
    std::string ranges;
    for (int i = 0; i < s.full.rank; ++i) {
      out.back().slice += text(s.full[i], " ");
      ranges += text(i == 0 ? "" : ":", s.start[i], ",", s.length[i]);
    }
    out.back().slice += ranges, out.back().part = s;
  }
  return out;
}

}  // namespace gradus
