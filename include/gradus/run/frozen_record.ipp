// The bodies of frozen_record.hpp.
#pragma once
#include <algorithm>
#include <bit>

#include "../base/body.hpp"
#include "../base/fnv1a.hpp"
#include "../base/frozen_label.hpp"
#include "frozen_record.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY frozen_record::frozen_record(std::span<const frozen_weights* const> layers)
    : layers_(layers.begin(), layers.end()) {}

GRADUS_BODY void frozen_record::find(const graph_view& g) {
  layers_.clear();
  for (int i = 0; i < g.size; ++i)
    if (const frozen_weights* w = g.nodes[i].op->frozen;
        w != nullptr && std::find(layers_.begin(), layers_.end(), w) == layers_.end())
      layers_.push_back(w);
}

GRADUS_BODY std::uint64_t digest_of(const frozen_weights& w) {
  fnv1a d;
  d.number(static_cast<std::uint32_t>(w.layer), 4);
  for (int k = 0; k < w.dims.rank; ++k) d.number(static_cast<std::uint32_t>(w.dims[k]), 4);
  for (std::int64_t k = 0; k < count(w.dims); ++k) d.number(static_cast<std::uint8_t>(w.codes[k]), 4);
  for (int k = 0; k < w.channels; ++k)
    d.number(std::bit_cast<std::uint32_t>(w.scales[k]), 4).number(std::bit_cast<std::uint32_t>(w.bias[k]), 4);
  return d.value();
}

// Returns one number per layer, in ascending order, because passes may change the order of layers.
GRADUS_BODY std::vector<std::uint64_t> frozen_record::digests() const {
  std::vector<std::uint64_t> all(layers_.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = digest_of(*layers_[i]);
  std::sort(all.begin(), all.end());
  return all;
}

GRADUS_BODY void frozen_record::save(std::vector<std::byte>& out) const {
  const std::vector<std::uint64_t> all = digests();
  // A new vector: compilers for boards, which warn of a null pointer in one that grows, see this code too.
  std::vector<std::byte> whole(out.size() + 8 * all.size());
  for (std::size_t i = 0; i < out.size(); ++i) whole[i] = out[i];
  for (std::size_t i = 0; i < all.size(); ++i) put_digest(std::span(whole).subspan(out.size()), i, all[i]);
  out.swap(whole);
}
GRADUS_BODY void frozen_record::load(std::span<const std::byte> in) {
  std::vector<std::uint64_t> saved(in.size() / 8);
  for (std::size_t i = 0; i < saved.size(); ++i) saved[i] = digest_in(in, i);
  // A graph that predicts may have fewer layers than the one that was trained.
  for (const std::uint64_t d : digests())
    if (std::find(saved.begin(), saved.end(), d) == saved.end())
      raise(status::data_loss,
            "the checkpoint was made above other frozen weights than this program has; build the program with the "
            "weights of then, or train in another model_dir (warm_start_from takes variables along)");
}

}  // namespace gradus::detail
