// Where variables are cut, which updates refuse it, and that an update of parts on several shards has the bits of one
// of whole variables.
#include <gradus/cluster/cut_variables.hpp>

#include <doctest/doctest.h>

#include <gradus/update/accumulate.hpp>
#include <gradus/update/average.hpp>
#include <gradus/update/chain.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/freeze.hpp>
#include <gradus/update/lookahead.hpp>
#include <gradus/update/loss_scale.hpp>
#include <gradus/update/multi.hpp>
#include <gradus/update/noise.hpp>
#include <gradus/update/not_finite.hpp>
#include <gradus/update/rules/adafactor.hpp>
#include <gradus/update/rules/adagrad.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/lamb.hpp>
#include <gradus/update/rules/lars.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <gradus/update/rules/muon.hpp>
#include <gradus/update/rules/soap.hpp>
#include <gradus/update/weight_decay.hpp>

#include <string>
#include <vector>

#include "../message.hpp"
#include "store_cases.hpp"

using namespace store_test;
using detail::cut_variables;
using model_list = std::vector<store_variable>;

namespace {
variable_partitioner into(std::int64_t n, int axis = 0) {
  return detail::partitioner_of(fixed_size_partitioner{.shards = n, .axis = axis});
}
// "name first row+rows" of each.
std::vector<std::string> shown(const model_list& all) {
  std::vector<std::string> out;
  for (const store_variable& v : all) {
    out.push_back(v.is_part() ? text(v.name, ' ', v.first_row, '+', v.dims[0]) : v.name);
    CHECK(v.whole == (v.is_part() ? v.name.substr(0, v.name.rfind('/')) : ""));
  }
  return out;
}
using list = std::vector<std::string>;
}  // namespace

TEST_CASE("a variable of rows is cut as TensorFlow cuts it, another one where blocks of sums begin") {
  const auto rows = [](const extents& dims, std::int64_t n) {
    return shown(cut_variables({{.name = "t", .dims = dims, .takes_rows = true}}, into(n), 4096));
  };
  CHECK(rows({10, 2}, 3) == list{"t/part_0 0+4", "t/part_1 4+3", "t/part_2 7+3"});
  CHECK(rows({2, 2}, 3) == list{"t/part_0 0+1", "t/part_1 1+1"});
  CHECK(rows({10, 2}, 1) == list{"t"});
  CHECK(rows({10, 0}, 3) == list{"t"});
  const auto dense = [](const extents& dims, std::int64_t n) {
    return shown(cut_variables({{.name = "w", .dims = dims}}, into(n), 4096));
  };
  CHECK(dense({9001}, 2) == list{"w/part_0 0+4096", "w/part_1 4096+4905"});  // 4501
  CHECK(dense({9001}, 3) == list{"w/part_0 0+4096", "w/part_1 4096+4905"});  // 3001 and 6001: the same block
  CHECK(dense({20480}, 3) == list{"w/part_0 0+8192", "w/part_1 8192+4096", "w/part_2 12288+8192"});
  CHECK(dense({40, 512}, 3) == list{"w/part_0 0+16", "w/part_1 16+8", "w/part_2 24+16"});  // 14 and 27
  CHECK(dense({40, 512}, 2) == list{"w/part_0 0+24", "w/part_1 24+16"});                   // 20: as near to 16
  CHECK(dense({3, 4096}, 3) == list{"w/part_0 0+1", "w/part_1 1+1", "w/part_2 2+1"});
  CHECK(dense({3, 64, 64}, 2) == list{"w/part_0 0+2", "w/part_1 2+1"});
  CHECK(dense({4096, 3}, 2) == list{"w"});  // a block ends nowhere within it at the end of a row
  CHECK(dense({7, 5}, 2) == list{"w"});
  CHECK(dense({}, 2) == list{"w"});
  CHECK(dense({0, 3}, 2) == list{"w"});
  const model_list two = cut_variables({{.name = "a", .dims = {8192}}, {.name = "b", .dims = {8192}}}, into(2), 4096);
  CHECK(shown(two) == list{"a/part_0 0+4096", "a/part_1 4096+4096", "b/part_0 0+4096", "b/part_1 4096+4096"});
  CHECK(two[1].known_as() == "a");
  CHECK(two[1].known_dims() == extents{8192});
  CHECK(two[1].first_element() == 4096);
  using named = std::vector<std::pair<std::string, std::string>>;
  CHECK(detail::chosen_cuts(two) ==
        named{{"the parts of \"a\"", "from rows 0, 4096"}, {"the parts of \"b\"", "from rows 0, 4096"}});
  CHECK(shown(cut_variables({{.name = "w", .dims = {8192}}}, {}, 4096)) == list{"w"});
}

TEST_CASE("a partitioner may choose by name; a cut that is none is refused with the variable's name") {
  const model_list all{{.name = "a", .dims = {8192}}, {.name = "b", .dims = {8192}}};
  const auto by_name = detail::partitioner_of([](std::string_view name, dtype, const extents&) {
    return cut_along{0, name == "b" ? 2 : 1};
  });
  CHECK(shown(cut_variables(all, by_name, 4096)) == list{"a", "b/part_0 0+4096", "b/part_1 4096+4096"});
  const auto refused = [](const variable_partitioner& p) {
    return message_of(status::invalid_argument, [&] { cut_variables({{.name = "w", .dims = {8, 512}}}, p, 4096); });
  };
  CHECK(refused(into(2, 1)) ==
        "the partitioner cuts \"w\" [8, 512] along axis 1; a cluster cuts variables along axis 0, so that a part is "
        "one piece of memory");
  const auto parts = [](std::int64_t n) {
    return detail::partitioner_of([n](dtype, const extents&) { return cut_along{0, n}; });
  };
  CHECK(refused(parts(9)) == "the partitioner makes 9 parts of \"w\" [8, 512]; expected 1 to 8");
  CHECK(refused(parts(0)) == "the partitioner makes 0 parts of \"w\" [8, 512]; expected 1 to 8");
  CHECK(
      message_of(status::invalid_argument,
                 [&] {
                   cut_variables({{.name = "w/part_1", .dims = {4}}, {.name = "w", .dims = {64, 512}}}, into(2), 4096);
                 }) ==
      "the partitioner cuts \"w\" [64, 512], and the model has a variable \"w/part_1\", as one of its parts would be "
      "named; rename that variable, or give a partitioner that returns 1 part for \"w\"");
  CHECK(shown(cut_variables({{.name = "w/part_2", .dims = {4}}, {.name = "w", .dims = {64, 512}}}, into(2), 4096)) ==
        list{"w/part_2", "w/part_0 0+32", "w/part_1 32+32"});
  CHECK(shown(cut_variables({{.name = "w/part_1", .dims = {64, 512}}, {.name = "w", .dims = {64, 512}}}, into(2),
                            4096)) ==
        list{"w/part_1/part_0 0+32", "w/part_1/part_1 32+32", "w/part_0 0+32", "w/part_1 32+32"});
  CHECK(shown(cut_variables({{.name = "w", .dims = {8, 512}}}, detail::partitioner_of([](dtype, const extents&) {
                              return cut_along{1, 1};
                            }),
                            4096)) == list{"w"});
}

namespace {
template <class... Policies>
std::string refused(store_variable v, Policies... policies) {
  const auto update = detail::compose_update(policies...);
  model_list parts = cut_variables({std::move(v)}, into(2), 4096);
  REQUIRE(parts.size() == 2);
  return message_of(status::invalid_argument, [&] { detail::prepare_parts(update, std::span(parts)); });
}
template <class... Policies>
void accepted(store_variable v, Policies... policies) {
  model_list parts = cut_variables({std::move(v)}, into(2), 4096);
  CHECK_NOTHROW(detail::prepare_parts(detail::compose_update(policies...), std::span(parts)));
  CHECK(parts[0].all_rows == (parts[0].takes_rows && decltype(detail::compose_update(policies...))::needs_norm));
  CHECK(!parts[1].all_rows);
}
}  // namespace

TEST_CASE("what measures a whole variable refuses that it is cut") {
  const store_variable w{.name = "w", .dims = {64, 512}}, table{.name = "t", .dims = {64, 8}, .takes_rows = true};
  const std::string begin = "the partitioner cuts \"w\" [64, 512], and ",
                    end = "; a cluster cuts no such variable. Give a partitioner that returns 1 part for it";
  const std::string tensors = begin + "its rule works on whole tensors (muon, soap, adafactor)" + end,
                    measures = begin +
                               "its rule, or a part of the chain, measures whole variables (lars, lamb, clip_by_norm)" +
                               end;
  CHECK(refused(w, muon{.rate = 0.1}) == tensors);
  CHECK(refused(w, soap{.rate = 0.1}) == tensors);
  CHECK(refused(w, adafactor{.rate = 0.1}) == tensors);
  CHECK(refused(w, multi{on{matrices{}, muon{.rate = 0.1}}, adam{.rate = 0.1}}) == tensors);
  CHECK(refused(w, lars{.rate = 0.1}) == measures);
  CHECK(refused(w, lamb{.rate = 0.1}) == measures);
  CHECK(refused(w, adam{}, clip_by_norm{1}) == measures);
  CHECK(refused(w, adam{}, clip_by_average_norm{1}) == measures);
  CHECK(refused(w, chain{clip_by_global_norm{1}, clip_by_norm{1}, adam{}}) == measures);
  CHECK(refused(w, adam{}, adaptive_clip{0.1}) == begin + "adaptive_clip measures whole columns" + end);
  CHECK(refused(w, adam{}, gradient_noise{.variance = 0.1}) ==
        begin + "gradient_noise draws the numbers of whole variables" + end);
  CHECK(refused(w, adam{}, accumulate{2}) == begin + "accumulate keeps the sums of whole variables" + end);
  store_variable limited = w;
  limited.limit = max_norm(1);
  CHECK(refused(limited, adam{}) == begin + "its constraint measures norms of the whole variable" + end);
  CHECK(refused(table, chain{clip_by_global_norm{1}, adam{}}) ==
        "the partitioner cuts \"t\" [64, 8], and its gradient comes as rows, of which a chain with "
        "clip_by_global_norm measures all; put the clip beside" +
            end);

  accepted(w, multi{on{named{"w"}, adam{.rate = 0.1}}, muon{.rate = 0.1}});
  accepted(w, chain{clip_by_value{-1, 1}, clip_by_global_norm{1}, weight_decay{0.1, matrices{}}, adam{}});
  accepted(table, adam{}, clip_by_value{-1, 1});
  accepted(table, adam{}, clip_by_global_norm{1});
  store_variable clipped = w;
  clipped.limit = non_neg;
  accepted(clipped, adam{});
}

namespace {
model_list a_cut_model() {
  return {{.name = "a/kernel", .dims = {7, 5}},
          {.name = "wide", .dims = {40, 512}},
          {.name = "long", .type = float64, .dims = {9001}},
          {.name = "scale", .dims = {}},
          {.name = "positive", .dims = {20001}, .limit = non_neg}};
}
struct parted {
  model_list model, parts;

  std::size_t whole_of(const store_variable& part) const {
    std::size_t i = 0;
    while (model[i].name != part.known_as()) ++i;
    return i;
  }
  contribution cut(const contribution& c, bool measured) const {
    contribution out;
    for (const store_variable& p : parts) {
      const std::size_t i = whole_of(p);
      auto& rows = out.rows.emplace_back();
      array& to = out.values.emplace_back(array{p.type, {}});
      const auto begin = c.values[i].x.begin();
      if (!p.takes_rows) {
        const auto first = begin + static_cast<std::ptrdiff_t>(p.first_element());
        to.x.assign(first, first + static_cast<std::ptrdiff_t>(p.size()));
        continue;
      }
      for (std::size_t k = 0; k < c.rows[i].size(); ++k) {  // the first part gets all, for the norm
        const std::int64_t row = c.rows[i][k] - p.first_row;
        if ((row < 0 || row >= p.dims[0]) && !(measured && p.is_part() && p.first_row == 0)) continue;
        rows.push_back(row);
        const auto first = begin + static_cast<std::ptrdiff_t>(k * p.width());
        to.x.insert(to.x.end(), first, first + static_cast<std::ptrdiff_t>(p.width()));
      }
    }
    return out;
  }
  // The name and bytes of an entry of the whole variable's state in a part.
  wire_slice cut(const store_variable& p, const std::string& name, dtype type, std::span<const std::byte> all) const {
    const std::size_t row = all.size() / static_cast<std::size_t>(p.known_dims()[0]);
    return {name, type, 0, all.subspan(static_cast<std::size_t>(p.first_row) * row, p.row_count() * row)};
  }
};

template <class... Policies>
void parts_of_shards(const model_list& model, std::uint32_t n, std::size_t contributions, Policies... policies) {
  using update_type = detail::update_among<Policies...>;
  INFO(n << " shards, " << contributions << " contributions");
  parted p{model, cut_variables(model, into(n + 1), 4096)};
  REQUIRE(p.parts.size() > model.size());
  draws draw{static_cast<std::uint32_t>(11 * n + contributions)};
  for (store_variable& v : p.parts) v.shard = static_cast<std::uint32_t>(draw.below(n));
  whole<Policies...> one(model, draw, policies...);
  const update_type update = detail::compose_update(policies...);
  auto many = std::make_unique<shards<update_type>>(p.parts, n, update, static_cast<std::int64_t>(contributions));
  state_list state_of_one;
  one.one.remembers(state_of_one);
  std::vector<wire_slice> initial;
  for (const store_variable& v : p.parts) {
    const std::size_t i = p.whole_of(v);
    initial.push_back(v.is_part() ? p.cut(v, v.name, v.type, one.values[i])
                                  : wire_slice{v.name, v.type, 0, one.values[i]});
    initial.back().name = v.name;
  }
  for (auto& s : many->all) s->restore(0, initial);
  for (std::uint64_t order = 1; order <= 4; ++order) {
    std::vector<contribution> set, cut;
    for (std::size_t k = 0; k < contributions; ++k) set.push_back(drawn(draw, model));
    if constexpr (update_type::scales_loss || update_type::looks_for_not_finite)
      if (order == 2) set.back().values[1].x[17000] = HUGE_VAL;
    for (const contribution& c : set) cut.push_back(p.cut(c, update_type::needs_norm));
    one.apply(set);
    many->update(order, cut);
    if (order == 2) {  // what a snapshot of a log has
      auto next = std::make_unique<shards<update_type>>(p.parts, n, update, static_cast<std::int64_t>(contributions));
      for (std::size_t s = 0; s < n; ++s) {
        std::vector<std::byte> bytes;
        many->all[s]->save(detail::bytes_out(bytes));
        detail::bytes_in in(bytes, "store");
        next->all[s]->load(in);
        in.end();
      }
      many = std::move(next);
    }
    std::size_t compared = 0, bytes = 0;
    const auto state = many->state();
    for (const state_entry& e : state_of_one.entries()) {
      if (e.name == "global_step") continue;
      std::vector<wire_slice> expected;
      std::vector<std::string> names;
      names.reserve(p.parts.size());
      for (const store_variable& v : p.parts) {
        const std::string& w = v.known_as();
        if (e.name != w && !e.name.starts_with(w + "/")) continue;
        names.push_back(v.name + e.name.substr(w.size()));
        expected.push_back(v.is_part() ? p.cut(v, names.back(), e.type, e.bytes)
                                       : wire_slice{names.back(), e.type, 0, e.bytes});
      }
      if (expected.empty()) expected.push_back({e.name, e.type, 0, e.bytes});
      for (const wire_slice& x : expected) {
        CAPTURE(x.name);
        for (const wire_slice& s : state) {
          if (s.name != x.name) continue;
          ++compared, bytes += s.bytes.size();
          REQUIRE(s.bytes.size() == x.bytes.size());
          CHECK((x.bytes.empty() || std::memcmp(s.bytes.data(), x.bytes.data(), x.bytes.size()) == 0));
        }
      }
    }
    CHECK(compared == state.size());
    if constexpr (update_type::needs_norm)
      for (auto& s : many->all) CHECK((s->gradient_norm() == one.one.gradient_norm() || order == 2));
  }
}
template <class... Policies>
void parts_have_the_bits(const model_list& model, Policies... policies) {
  for (std::uint32_t n = 1; n <= 3; ++n) parts_of_shards(model, n, n, policies...);
}
}  // namespace

TEST_CASE("parts on shards have the bits of whole variables: Adam, a clip by the global norm, an average") {
  parts_have_the_bits(a_cut_model(), adam{.rate = 0.1}, clip_by_global_norm{0.5},
                      exponential_moving_average{.decay = 0.9});
}
TEST_CASE("the same with a norm within a chain, masks that see the whole, lookahead, and updates that are left out") {
  parts_have_the_bits(a_cut_model(),
                      chain{clip_by_value{-0.9, 0.9}, clip_by_global_norm{0.5}, weight_decay{0.1, named{"wide"}},
                            adam{.rate = 0.1}, lookahead{.every = 2}},
                      not_finite::skip{});
  parts_have_the_bits(
      a_cut_model(),
      multi{on{matrices{}, momentum{.rate = 0.1}}, on{named{"long"}, gradient_descent{.rate = 0.1}}, adam{.rate = 0.1}},
      dynamic_loss_scale{.initial = 8, .growth_interval = 2}, freeze{named{"scale"}});
}
TEST_CASE("the same with gradients that come as rows") {
  auto model = a_cut_model();
  model.push_back({.name = "table", .dims = {9, 4}, .takes_rows = true});
  model.push_back({.name = "tall", .type = float64, .dims = {50, 1}, .takes_rows = true});
  parts_have_the_bits(model, adam{.rate = 0.1}, exponential_moving_average{.decay = 0.9});
  parts_have_the_bits(model, adagrad{.rate = 0.1}, clip_by_value{-0.5, 0.5});
  parts_have_the_bits(model, adam{.rate = 0.1}, clip_by_global_norm{0.5});
  parts_have_the_bits(model, multi{on{matrices{}, momentum{.rate = 0.1}}, adam{.rate = 0.1}}, not_finite::skip{});
}
