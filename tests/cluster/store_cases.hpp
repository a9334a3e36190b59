// A model's variables on the shards of a parameter server beside an updater that has all of them: the same bits.
#pragma once
#include <gradus/cluster/update_store.hpp>

#include <doctest/doctest.h>

#include <gradus/cpu/device.hpp>
#include <gradus/run/updater.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace store_test {
using namespace gradus;
using detail::staged_part;
using detail::store_variable;
using detail::wire_slice;

struct draws {
  std::uint32_t state = 1;
  double operator()() {
    state = state * 1664525u + 1013904223u;
    return static_cast<double>(state >> 8) / (1 << 23) - 1;
  }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(((*this)() + 1) / 2 * static_cast<double>(n)); }
};

// Values of float32 or float64.
struct array {
  dtype type = float32;
  std::vector<double> x;  // floats are exact in it

  std::vector<std::byte> bytes() const {
    std::vector<std::byte> out(x.size() * size_of(type));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto f = static_cast<float>(x[i]);
      std::memcpy(out.data() + i * size_of(type), type == float32 ? static_cast<const void*>(&f) : &x[i],
                  size_of(type));
    }
    return out;
  }
};
inline array drawn(draws& draw, dtype type, std::size_t n) {
  array a{type, std::vector<double>(n)};
  for (double& x : a.x) x = type == float32 ? static_cast<float>(draw()) : draw();
  return a;
}
inline double rounded(dtype type, double x) { return type == float32 ? static_cast<float>(x) : x; }
// The mean of n arrays, by the definition of the tree: n are cut at the largest power of two below n.
inline array tree(const std::vector<array>& of, std::size_t first, std::size_t n) {
  if (n == 1) return of[first];
  std::size_t left = 1;
  while (2 * left < n) left *= 2;
  array a = tree(of, first, left);
  const array b = tree(of, first + left, n - left);
  for (std::size_t i = 0; i < a.x.size(); ++i) a.x[i] = rounded(a.type, a.x[i] + b.x[i]);
  return a;
}
inline array mean(const std::vector<array>& of) {
  array a = tree(of, 0, of.size());
  for (double& x : a.x) x = rounded(a.type, x / static_cast<double>(of.size()));
  return a;
}

// Kernels and biases of both types, one of more than two blocks of 4096, a scalar, one without elements, one with a
// constraint.
inline std::vector<store_variable> a_model() {
  return {{.name = "a/kernel", .dims = {7, 5}},
          {.name = "a/bias", .dims = {5}},
          {.name = "long", .dims = {9001}},
          {.name = "wide", .type = float64, .dims = {3, 6}},
          {.name = "scale", .dims = {}},
          {.name = "nothing", .dims = {0, 3}},
          {.name = "limited", .dims = {4, 3}, .limit = max_norm(0.5)}};
}
inline std::vector<store_variable> with_tables(std::vector<store_variable> model) {
  model.push_back({.name = "table", .dims = {9, 4}, .takes_rows = true});
  model.push_back({.name = "tall", .type = float64, .dims = {5000, 1}, .takes_rows = true});
  return model;
}

// What one worker sends: of each variable, a dense gradient or rows.
struct contribution {
  std::vector<array> values;
  std::vector<std::vector<std::int64_t>> rows;
};
inline contribution drawn(draws& draw, const std::vector<store_variable>& model) {
  contribution c;
  for (const store_variable& v : model) {
    auto& rows = c.rows.emplace_back(v.takes_rows ? draw.below(7) : 0);
    for (auto& row : rows) row = static_cast<std::int64_t>(draw.below(v.row_count()));
    c.values.push_back(drawn(draw, v.type, v.takes_rows ? rows.size() * v.width() : v.size()));
  }
  return c;
}
// A contribution as bytes, for one shard.
struct sent_parts {
  std::vector<std::vector<std::byte>> memory;
  std::vector<wire_slice> slices;

  sent_parts(const contribution& c, const std::vector<store_variable>& model, std::uint32_t shard) {
    memory.reserve(model.size());
    for (std::size_t i = 0; i < model.size(); ++i) {
      if (model[i].shard != shard) continue;
      memory.push_back(c.values[i].bytes());
      if (model[i].takes_rows)
        slices.push_back({model[i].name, int64, 0, std::as_bytes(std::span(c.rows[i])), detail::slice_role::rows});
      slices.push_back({model[i].name, model[i].type, 0, memory.back(),
                        model[i].takes_rows ? detail::slice_role::values : detail::slice_role::dense});
    }
  }
};

template <class Update>
using store = detail::update_store<Update, cpu<fast>>;

// The shards of one server, and what passes between them.
template <class Update>
struct shards {
  std::vector<store_variable> model;
  std::vector<std::unique_ptr<store<Update>>> all;
  std::vector<wire_slice> beside;  // what the last worker of a set sends beside its gradients

  shards(std::vector<store_variable> m, std::uint32_t n, const Update& update, std::int64_t divide_by) : model(m) {
    for (std::uint32_t s = 0; s < n; ++s)
      all.push_back(std::make_unique<store<Update>>(
          detail::update_store_options{.shard = s, .variables = model, .divide_by = divide_by}, update));
  }
  void begin(std::uint64_t order, const std::vector<contribution>& set, std::vector<std::vector<sent_parts>>& keep) {
    keep.clear();
    for (std::uint32_t s = 0; s < all.size(); ++s) {
      auto& parts = keep.emplace_back();
      std::vector<staged_part> staged;
      parts.reserve(set.size());
      for (std::size_t k = 0; k < set.size(); ++k) {
        sent_parts& p = parts.emplace_back(set[k], model, s);
        if (k + 1 == set.size()) p.slices.insert(p.slices.begin(), beside.begin(), beside.end());
        staged.push_back({{.worker = k, .incarnation = 1, .sequence = order}, order - 1, p.slices});
        CHECK(all[s]->problem_of(p.slices) == "");
      }
      all[s]->begin(order, staged);
    }
  }
  // How many rounds it took.
  std::size_t exchange() {
    std::size_t round = 0;
    for (; round < all[0]->rounds(); ++round) {
      std::vector<std::vector<double>> lists;
      for (auto& s : all) {
        CHECK(s->rounds() == all[0]->rounds());
        const auto list = s->measure(round);
        lists.emplace_back(list.begin(), list.end());
      }
      const std::vector<std::span<const double>> by_shard(lists.begin(), lists.end());
      for (auto& s : all) s->settle(round, by_shard);
    }
    return round;
  }
  std::size_t update(std::uint64_t order, const std::vector<contribution>& set) {
    std::vector<std::vector<sent_parts>> keep;
    begin(order, set, keep);
    const std::size_t rounds = exchange();
    for (auto& s : all) s->apply();
    return rounds;
  }
  std::vector<wire_slice> state() const {
    std::vector<wire_slice> out;
    for (auto& s : all) out.insert(out.end(), s->state().begin(), s->state().end());
    return out;
  }
};

// Every entry of the one process's state, in bits.
template <class Updater, class Update>
void same_state(Updater& one, const shards<Update>& many) {
  state_list list;
  one.remembers(list);
  const auto state = many.state();
  std::size_t found = 0;
  for (const state_entry& e : list.entries()) {
    INFO(e.name);
    if (e.name == "global_step") {
      for (auto& s : many.all) CHECK(s->global_step() == static_cast<std::uint64_t>(one.global_step()));
      continue;
    }
    std::size_t here = 0;
    for (const wire_slice& s : state) {
      if (s.name != e.name) continue;
      ++here;
      CHECK(s.type == e.type);
      REQUIRE(s.bytes.size() == e.bytes.size());
      CHECK((e.bytes.empty() || std::memcmp(s.bytes.data(), e.bytes.data(), e.bytes.size()) == 0));
    }
    CHECK(here >= 1);
    found += here;
  }
  CHECK(found == state.size());
}

// One updater of all variables.
template <class... Policies>
struct whole {
  std::vector<store_variable> model;
  std::vector<std::vector<std::byte>> values;
  updater<cpu<fast>, Policies...> one;

  whole(const std::vector<store_variable>& m, draws& draw, Policies... policies) : model(m), one(policies...) {
    for (const store_variable& v : model) values.push_back(drawn(draw, v.type, v.size()).bytes());
    for (std::size_t i = 0; i < model.size(); ++i)
      one.track(model[i].name, tensor_view(model[i].type, model[i].dims, values[i].data()), model[i].limit);
  }
  std::vector<wire_slice> initial() const {
    std::vector<wire_slice> out;
    for (std::size_t i = 0; i < model.size(); ++i) out.push_back({model[i].name, model[i].type, 0, values[i]});
    return out;
  }
  void apply(const std::vector<contribution>& set) {
    std::vector<named_gradient> named;
    std::vector<std::vector<std::byte>> keep;
    std::vector<std::vector<std::int64_t>> rows;
    keep.reserve(model.size()), rows.reserve(model.size());
    for (std::size_t i = 0; i < model.size(); ++i) {
      const store_variable& v = model[i];
      std::vector<array> all;
      for (const contribution& c : set) all.push_back(c.values[i]);
      if (!v.takes_rows) {
        keep.push_back(mean(all).bytes());
        named.emplace_back(v.name, const_tensor_view(v.type, v.dims, keep.back().data()));
        continue;
      }
      array joined{v.type, {}};
      auto& listed = rows.emplace_back();
      for (std::size_t k = 0; k < set.size(); ++k) {
        for (const double x : all[k].x) joined.x.push_back(rounded(v.type, x / static_cast<double>(set.size())));
        listed.insert(listed.end(), set[k].rows[i].begin(), set[k].rows[i].end());
      }
      keep.push_back(joined.bytes());
      named.emplace_back(v.name,
                         indexed_slices(listed, const_tensor_view(v.type, {static_cast<std::int64_t>(joined.x.size())},
                                                                  keep.back().data())));
    }
    one.apply(named);
  }
};

// Some steps of n contributions each, by shards and by one updater; after the third the shards go on as another number
// of shards, after the fourth each is saved and loaded, after the fifth they take the updater's state.
template <class... Policies>
void same_bits(std::vector<store_variable> model, std::uint32_t n, std::size_t contributions, Policies... policies) {
  using update_type = detail::update_among<Policies...>;
  const update_type update = detail::compose_update(policies...);
  INFO(n << " shards, " << contributions << " contributions");
  draws draw{static_cast<std::uint32_t>(7 * n + contributions)};
  for (store_variable& v : model) v.shard = static_cast<std::uint32_t>(draw.below(n));
  whole<Policies...> one(model, draw, policies...);
  const auto by = static_cast<std::int64_t>(contributions);
  auto many = std::make_unique<shards<update_type>>(model, n, update, by);
  for (auto& s : many->all) s->restore(0, one.initial());
  for (std::uint64_t order = 1; order <= 6; ++order) {
    std::vector<contribution> set;
    for (std::size_t k = 0; k < contributions; ++k) set.push_back(drawn(draw, model));
    if constexpr (update_type::scales_loss || update_type::looks_for_not_finite)
      if (order == 2) set.back().values[2].x[4500] = HUGE_VAL;  // one shard alone sees it
    one.apply(set);
    many->update(order, set);
    same_state(one.one, *many);
    if (order == 3) {
      const std::uint32_t other = n % 3 + 1;
      for (store_variable& v : model) v.shard = static_cast<std::uint32_t>(draw.below(other));
      auto next = std::make_unique<shards<update_type>>(model, other, update, by);
      for (auto& s : next->all) s->restore(order, many->state());
      many = std::move(next);
      same_state(one.one, *many);
    } else if (order == 4) {
      auto next =
          std::make_unique<shards<update_type>>(model, static_cast<std::uint32_t>(many->all.size()), update, by);
      for (std::size_t s = 0; s < many->all.size(); ++s) {
        std::vector<std::byte> bytes;
        many->all[s]->save(detail::bytes_out(bytes));
        detail::bytes_in in(bytes, "store");
        next->all[s]->load(in);
        in.end();
      }
      many = std::move(next);
      same_state(one.one, *many);
    } else if (order == 5) {  // from the state of one process
      state_list list;
      one.one.remembers(list);
      std::vector<wire_slice> parts;
      for (const state_entry& e : list.entries()) parts.push_back({e.name, e.type, 0, e.bytes});
      for (auto& s : many->all) s->restore(0, one.initial());
      for (auto& s : many->all) s->restore(order, parts);
      same_state(one.one, *many);
    }
  }
}
template <class... Policies>
void same_bits_anyhow(const std::vector<store_variable>& model, Policies... policies) {
  for (std::uint32_t n = 1; n <= 3; ++n)
    for (std::size_t contributions = 1; contributions <= 4; ++contributions)
      same_bits(model, n, contributions, policies...);
}
// Each number of shards, with some number of contributions.
template <class... Policies>
void same_bits_drawn(const std::vector<store_variable>& model, std::size_t draw, Policies... policies) {
  for (std::uint32_t n = 1; n <= 3; ++n) same_bits(model, n, 1 + (draw + n) % 4, policies...);
}

}  // namespace store_test
