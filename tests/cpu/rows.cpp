// compiled with: -O3 -march=native
#include <gradus/cpu/rows.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/ftrl.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <vector>

#include "updated.hpp"

using namespace gradus;
using updated::random_numbers, updated::state;

TEST_CASE("rows whose hashes differ only where the table does not look are told apart") {
  // The hash is a product with an odd number, so rows can be made for hashes.
  const std::uint64_t factor = row_chains::hash(1);
  std::uint64_t inverse = 1;
  for (int i = 0; i < 6; ++i) inverse *= 2 - factor * inverse;
  const auto row_of = [&](std::uint64_t hash) { return static_cast<std::int64_t>(inverse * hash); };
  const std::int64_t one = row_of(0x123456789abcde00u), other = row_of(0x123456789abcde01u);
  REQUIRE(row_chains::hash(static_cast<std::uint64_t>(one)) + 1 == row_chains::hash(static_cast<std::uint64_t>(other)));
  const std::int64_t rows[] = {one, other, one};
  std::vector<std::int32_t> scratch(row_chains::scratch(3));
  const row_chains chains = chain_rows(rows, 3, scratch);
  CHECK(chains.distinct == 2);
  CHECK(chains.first[1] == 1);
  CHECK(chains.next[0] == 2);
  CHECK(chains.next[1] == -1);
  CHECK(chains.find(rows, one) == 0);
  CHECK(chains.find(rows, other) == 1);
}

TEST_CASE("rows are chained in order of first occurrence, their values in order of arrival") {
  const std::vector<std::int64_t> rows{7, 3, 7, 1LL << 40, 3, 7};
  std::vector<std::int32_t> scratch(row_chains::scratch(rows.size()));
  const auto chains = chain_rows(rows.data(), rows.size(), scratch);
  REQUIRE(chains.distinct == 3);
  CHECK(std::vector<std::int32_t>(chains.first.begin(), chains.first.begin() + 3) ==
        std::vector<std::int32_t>{0, 1, 3});
  CHECK(chains.next[0] == 2);
  CHECK(chains.next[2] == 5);
  CHECK(chains.next[5] == -1);
  CHECK(chains.next[1] == 4);
  CHECK(chains.next[3] == -1);
  CHECK(chains.find(rows.data(), 3) == 1);
  CHECK(chains.find(rows.data(), 4) == -1);
  CHECK(chain_rows(rows.data(), 0, {}).distinct == 0);
  CHECK(chain_rows(rows.data(), 0, {}).find(rows.data(), 7) == -1);
}

TEST_CASE("many rows chain correctly") {
  constexpr std::size_t n = 5000;
  std::vector<std::int32_t> rows(n), scratch(row_chains::scratch(n));
  random_stream r{3, 0};
  for (auto& x : rows) x = static_cast<std::int32_t>(r.below(700)) * 64;
  const auto chains = chain_rows(rows.data(), n, scratch);
  std::vector<std::int32_t> seen;
  std::size_t walked = 0;
  for (std::size_t d = 0; d < chains.distinct; ++d) {
    std::int32_t last = -1;
    for (auto at = chains.first[d]; at >= 0; at = chains.next[static_cast<std::size_t>(at)], ++walked) {
      CHECK(at > last);
      CHECK(rows[static_cast<std::size_t>(at)] == rows[static_cast<std::size_t>(chains.first[d])]);
      last = at;
    }
    seen.push_back(rows[static_cast<std::size_t>(chains.first[d])]);
  }
  CHECK(walked == n);
  std::sort(seen.begin(), seen.end());
  CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
}

TEST_CASE("chains of drawn rows are those of a search through all that came before") {
  random_stream r{11, 0};
  for (int trial = 0; trial < 300; ++trial) {
    const auto n = static_cast<std::size_t>(1 + r.below(trial < 200 ? 40 : 700));
    const auto kinds = 1 + r.below(static_cast<std::uint32_t>(trial % 3 == 0 ? 5 : trial % 3 == 1 ? 2 * n : 1u << 20));
    std::vector<std::int64_t> rows(n);
    for (auto& row : rows) row = static_cast<std::int64_t>(r.below(kinds));
    std::vector<std::int32_t> scratch(row_chains::scratch(n), -7);
    const auto chains = chain_rows(rows.data(), n, std::span(scratch));
    std::vector<std::int32_t> first, next(n, -1);
    for (std::size_t i = 0; i < n; ++i) {
      std::size_t before = i;
      while (before > 0 && rows[before - 1] != rows[i]) --before;
      if (before == 0)
        first.push_back(static_cast<std::int32_t>(i));
      else
        next[before - 1] = static_cast<std::int32_t>(i);
    }
    REQUIRE(chains.distinct == first.size());
    CHECK(chains.all_distinct() == (first.size() == n));
    CHECK(std::equal(first.begin(), first.end(), chains.first.begin()));
    CHECK(std::equal(next.begin(), next.end(), chains.next.begin(), chains.next.end()));
    for (std::int64_t row = 0; row < static_cast<std::int64_t>(std::min<std::uint64_t>(kinds, 100)); ++row) {
      const auto at = std::find(rows.begin(), rows.end(), row);
      CHECK(chains.find(rows.data(), row) == (at == rows.end() ? -1 : static_cast<std::int32_t>(at - rows.begin())));
    }
  }
}

TEST_CASE("rows that are listed once each have the bits of a lane") {
  const auto check = []<class T>(T, std::size_t width, std::size_t n) {
    constexpr std::size_t rows = 257;
    const composed update{ftrl{.rate = 0.1, .l1 = 1e-3}, clip_by_global_norm{1.0}};
    using single_type = std::remove_cvref_t<decltype(update.single())>;
    std::vector<std::int32_t> listed(n);
    for (std::size_t i = 0; i < n; ++i) listed[i] = static_cast<std::int32_t>((i * 101 + n) % rows);
    const auto values = random_numbers<T>(n * width, 5);
    std::vector<std::int32_t> scratch(row_chains::scratch(n));
    const state<T, single_type> start(update.single(), random_numbers<T>(rows * width, 6));
    const auto c = update.template prepare<T>(0);
    auto a = start, b = start;
    for (auto* s : {&a, &b})
      for (std::size_t i = 0; i < single_type::mirror_count; ++i) s->pointers[i] = s->mirrors[i].data();
    sweep_rows<fast>(update.single(), c, T(0.7), a.theta.data(), a.pointers.data(), rows, width, listed.data(),
                     values.data(), n, scratch);
    sweep_rows<fast, T, single_type, std::int32_t, detail::lane<T, fast>>(update.single(), c, T(0.7), b.theta.data(),
                                                                          b.pointers.data(), rows, width, listed.data(),
                                                                          values.data(), n, scratch);
    CHECK(a == b);
  };
  for (const std::size_t width : {1u, 2u, 3u, 7u, 15u})
    for (const std::size_t n : {1u, 2u, 31u, 32u, 33u, 63u, 64u, 65u, 130u, 257u}) {
      check(0.0f, width, n);
      check(0.0, width, n);
    }
}

TEST_CASE("sparse rows: lanes and packs agree, other rows stay, the sum runs in order of arrival") {
  const auto check = []<class T>(T, auto update, std::size_t width) {
    using composed_type = decltype(update);
    constexpr std::size_t rows = 20;
    const std::vector<std::int32_t> listed{4, 19, 4, 0, 4, 7};
    const auto values = random_numbers<T>(listed.size() * width, 5);
    std::vector<std::int32_t> scratch(row_chains::scratch(listed.size()));
    state<T, composed_type> a(update, random_numbers<T>(rows * width, 6)), b = a, dense = a, before = a;
    for (auto* s : {&a, &b, &dense})
      for (std::size_t i = 0; i < composed_type::mirror_count; ++i) s->pointers[i] = s->mirrors[i].data();
    const auto c = update.template prepare<T>(0);
    const T scale = T(0.7);
    sweep_rows<fast>(update, c, scale, a.theta.data(), a.pointers.data(), rows, width, listed.data(), values.data(),
                     listed.size(), scratch);
    sweep_rows<fast, T, composed_type, std::int32_t, detail::lane<T, fast>>(
        update, c, scale, b.theta.data(), b.pointers.data(), rows, width, listed.data(), values.data(), listed.size(),
        scratch);
    CHECK(a == b);
    // The merged gradient by hand, each value scaled before it is added, swept densely over the listed rows.
    std::vector<T> g(rows * width);
    std::vector<bool> first(rows, true);
    for (std::size_t i = 0; i < listed.size(); ++i) {
      const auto row = static_cast<std::size_t>(listed[i]);
      for (std::size_t j = 0; j < width; ++j) {
        volatile T scaled = values[i * width + j] * scale;
        g[row * width + j] = first[row] ? scaled : g[row * width + j] + scaled;
      }
      first[row] = false;
    }
    sweep<fast>(update, c, T(1), dense.theta.data(), g.data(), dense.pointers.data(), g.size());
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t j = row * width; j < (row + 1) * width; ++j) {
        CHECK(a.theta[j] == (first[row] ? before : dense).theta[j]);
        for (std::size_t m = 0; m < composed_type::slot_count; ++m)
          CHECK(a.mirrors[m][j] == (first[row] ? before : dense).mirrors[m][j]);
      }
  };
  for (std::size_t width : {1u, 2u, 3u, 8u, 16u, 19u, 40u}) {
    check(0.0f, composed{adam{}, clip_by_global_norm{1.0}}.single(), width);
    check(0.0, composed{momentum{.rate = 0.3}, clip_by_global_norm{1.0}}.single(), width);
  }
}

TEST_CASE("values shared by several rows, and rows swept in parts, have the bits of the plain form") {
  const auto check = []<class T>(T, std::size_t width, std::size_t bags, std::size_t per) {
    constexpr std::size_t rows = 300;
    const composed update{ftrl{.rate = 0.1, .l1 = 1e-3}, clip_by_global_norm{1.0}};
    using single_type = std::remove_cvref_t<decltype(update.single())>;
    const std::size_t n = bags * per;
    std::vector<std::int64_t> listed(n);
    random_stream r{width, 1};
    for (auto& x : listed) x = static_cast<std::int64_t>(r.below(rows));
    const auto values = random_numbers<T>(bags * width, 5);
    std::vector<T> spread(n * width);
    for (std::size_t i = 0; i < n; ++i)
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(i / per * width), width,
                  spread.begin() + static_cast<std::ptrdiff_t>(i * width));
    std::vector<std::int32_t> scratch(row_chains::scratch(n));
    const state<T, single_type> start(update.single(), random_numbers<T>(rows * width, 6));
    const auto c = update.template prepare<T>(0);
    const auto stepped = [&](auto step) {
      auto s = start;
      for (std::size_t i = 0; i < single_type::mirror_count; ++i) s.pointers[i] = s.mirrors[i].data();
      step(s);
      return s;
    };
    const T scale = T(0.7);
    const auto plain = stepped([&](auto& s) {
      sweep_rows<fast, T, single_type, std::int64_t, detail::lane<T, fast>>(update.single(), c, scale, s.theta.data(),
                                                                            s.pointers.data(), rows, width,
                                                                            listed.data(), spread.data(), n, scratch);
    });
    CHECK(plain == stepped([&](auto& s) {
            sweep_rows<fast>(update.single(), c, scale, s.theta.data(), s.pointers.data(), rows, width, listed.data(),
                             values.data(), n, scratch, per);
          }));
    for (const std::size_t parts : {1u, 2u, 3u, 4u, 7u, 16u})
      CHECK(plain == stepped([&](auto& s) {
              const auto chains = chain_rows(listed.data(), n, std::span(scratch));
              for (std::size_t part = 0; part < parts; ++part)
                sweep_chains<fast>(update.single(), c, scale, s.theta.data(), s.pointers.data(), width, listed.data(),
                                   values.data(), chains, chains.distinct * part / parts,
                                   chains.distinct * (part + 1) / parts, per);
            }));
    prefetch_rows<single_type>(start.theta.data(), start.pointers.data(), rows, width, listed.data(), n);
  };
  for (const std::size_t width : {1u, 2u, 3u, 7u, 8u, 15u, 16u, 17u, 33u}) {
    check(0.0f, width, 40, 5);
    check(0.0, width, 3, 26);
  }
  check(0.0f, 1, 200, 1);
  check(0.0f, 1, 1, 1);
  check(0.0f, 4, 0, 3);
}

TEST_CASE("row numbers are checked") {
  const std::int32_t rows[] = {0, 2, 5, -1};
  check_rows(rows, 2, 3);
  check_rows(rows, 0, 0);
  const std::int64_t wide[] = {0, 1LL << 32, 2};
  check_rows(wide, 1, 3);
  CHECK_THROWS_AS(check_rows(wide, 3, 3), invalid_argument);  // not 0, cut to 32 bits
  CHECK_THROWS_WITH_AS(
      check_rows(rows, 4, 3),
      "Index 5 at offset 2 in indices is out of range; expected [0, 3), the rows of the variable. Nothing was changed",
      invalid_argument);
}
