// The bodies of crossed_column.hpp.
#pragma once
#include "../base/body.hpp"
#include "crossed_column.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY crossed_rule::crossed_rule(const std::vector<cross_key>& keys, std::int64_t n, std::uint64_t hash_key)
    : n_(n), hash_key_(hash_key) {
  const auto refuse = [](const auto&... pieces) {
    raise(status::invalid_argument, text("crossed_column: ", pieces...));
  };
  if (keys.size() < 2) refuse("expected at least 2 keys, found ", keys.size());
  check_buckets("crossed_column", n, "a hash_bucket_size");
  for (const cross_key& k : keys) {
    if (k.feature() != nullptr) {
      check_key("crossed_column", *k.feature());
      keys_.push_back(k);
      continue;
    }
    const categorical_rule& rule = k.column()->rule();
    if (const auto* inner = dynamic_cast<const crossed_rule*>(&rule)) {  // its keys take its place
      keys_.insert(keys_.end(), inner->keys_.begin(), inner->keys_.end());
      continue;
    }
    if (rule.hashed())
      refuse("expected no column that is hashed already, found \"", rule.name(),
             "\"; give the name of its feature, which is hashed here");
    if (rule.weighted()) refuse("expected columns without weights, found \"", rule.name(), '"');
    keys_.push_back(k);
  }
}

GRADUS_BODY std::string crossed_rule::name() const {
  std::vector<std::string> names;
  for (const cross_key& k : keys_) names.push_back(k.feature() != nullptr ? *k.feature() : k.column()->name());
  std::sort(names.begin(), names.end());
  std::string out;
  for (const auto& s : names) out += text(out.empty() ? "" : "_X_", s);
  return out;
}

GRADUS_BODY std::int64_t crossed_rule::widest(const std::function<std::int64_t(std::string_view)>& width_of) const {
  std::int64_t n = 1;
  for (const cross_key& k : keys_)
    n *= k.feature() != nullptr ? width_of(*k.feature()) : k.column()->rule().widest(width_of);
  return n;
}

GRADUS_BODY void crossed_rule::needs(std::vector<feature_need>& out) const {
  for (const cross_key& k : keys_) {
    if (k.feature() != nullptr)
      out.push_back({.key = *k.feature(), .kind = feature_kind::text});
    else
      k.column()->rule().needs(out);
  }
}

GRADUS_BODY void crossed_rule::read(const features& examples, id_lists& out) const {
  std::vector<id_lists> prints;  // fingerprints or ids of each key, in the order of the chain
  for (const bool dense : {false, true})
    for (const cross_key& k : keys_) {
      const feature* f = k.feature() != nullptr ? &examples[*k.feature()] : nullptr;
      if ((f != nullptr && !f->ragged()) != dense) continue;
      prints.push_back(f != nullptr ? prints_of(*f, examples.rows()) : k.column()->ids(examples));
    }
  out.clear();
  std::vector<std::size_t> at(prints.size());
  for (std::int64_t r = 0; r < examples.rows(); ++r) {
    bool more = true;
    for (std::size_t k = 0; k < prints.size(); ++k) {
      at[k] = prints[k].begin(r);
      more = more && at[k] < prints[k].end(r);
    }
    std::int64_t all = 1;
    for (std::size_t k = 0; k < prints.size() && more; ++k)
      if (__builtin_mul_overflow(all, static_cast<std::int64_t>(prints[k].end(r) - prints[k].begin(r)), &all) ||
          all > out.most)
        raise(status::invalid_argument,
              text("column \"", name(), "\": example ", r, " of the batch has more than ", out.most,
                   " crosses; give more room (id_lists::most; ids_per_example or ids_of of a feature_layout)"));
    while (more) {
      std::uint64_t h = hash_key_;
      for (std::size_t k = 0; k < prints.size(); ++k)
        h = chain_fingerprints(h, static_cast<std::uint64_t>(prints[k].ids[at[k]]));
      out.add(static_cast<std::int64_t>(h % static_cast<std::uint64_t>(n_)));
      // Goes to the next combination, as an odometer does: the last key changes fastest.
      std::size_t k = prints.size();
      while (k > 0 && ++at[k - 1] == prints[k - 1].end(r)) --k, at[k] = prints[k].begin(r);
      more = k > 0;
    }
    out.end_row();
  }
}

GRADUS_BODY id_lists crossed_rule::prints_of(const feature& f, std::int64_t rows) const {
  if (f.kind == feature_kind::float32)
    raise(status::invalid_argument, text("crossed column \"", name(), "\": expected string or int64, found \"", f.name,
                                         "\" of float32; cross a bucketized_column of it"));
  id_lists out;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::size_t i = f.begin(r), end = f.end(r); i < end; ++i)
      out.add(f.kind == feature_kind::int64 ? f.ints[i] : static_cast<std::int64_t>(fingerprint64(f.texts[i])));
    out.end_row();
  }
  return out;
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY categorical_column crossed_column(const std::vector<cross_key>& keys, std::int64_t hash_bucket_size,
                                              const cross_options& o) {
  return categorical_column(std::make_shared<detail::crossed_rule>(keys, hash_bucket_size, o.hash_key));
}

}  // namespace gradus
