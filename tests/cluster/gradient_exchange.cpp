// Sums over ranks: the additions of tree_sum, whatever the buckets; gathered and broadcast bytes.
#include <gradus/cluster/gradient_exchange.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "../message.hpp"

namespace {
using namespace gradus;
using detail::gradient_exchange;
using detail::rank_network;
using detail::thread_ranks;

template <class F>
void on_each(int size, F f) {
  thread_ranks ranks(size, "worker", {});
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) threads.emplace_back([&ranks, &f, r] { f(ranks.end_of(r)); });
  for (auto& t : threads) t.join();
}

// Arrays as variables lie: two that follow each other, a gap, one of doubles, one that is long, an empty one.
struct arrays {
  aligned_buffer memory{std::size_t{1} << 20};
  std::vector<gradient_exchange::array> all;

  explicit arrays(int rank, int step) {
    std::size_t at = 0;
    const auto add = [&](dtype type, std::size_t n, std::size_t gap) {
      const std::size_t bytes = n * size_of(type);
      all.push_back({type, {memory.data() + at, bytes}});
      at += align_up(bytes) + gap;
    };
    add(float32, 5, 0), add(float32, 300, 128), add(float64, 77, 0), add(float32, 70001, 0), add(float32, 0, 64);
    add(float64, 9000, 0), add(float32, 1, 0);
    fill(rank, step);
  }
  void fill(int rank, int step) {
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t k = 0; k < all[i].bytes.size() / size_of(all[i].type); ++k) {
        const double x = 1.0 / (1.0 + static_cast<double>((k * 7 + i * 13 + static_cast<std::size_t>(rank) * 31 +
                                                           static_cast<std::size_t>(step) * 3) %
                                                          101));
        if (all[i].type == float64)
          reinterpret_cast<double*>(all[i].bytes.data())[k] = x;
        else
          reinterpret_cast<float*>(all[i].bytes.data())[k] = static_cast<float>(x);
      }
  }
  bool operator==(const arrays& other) const {
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!all[i].bytes.empty() &&
          std::memcmp(all[i].bytes.data(), other.all[i].bytes.data(), all[i].bytes.size()) != 0)
        return false;
    return true;
  }
};
arrays tree_of(int size, int step) {
  arrays sum(0, step);
  for (std::size_t i = 0; i < sum.all.size(); ++i) {
    if (sum.all[i].bytes.empty()) continue;
    tree_sum tree(size, sum.all[i].bytes.size());
    for (int r = 0; r < size; ++r) {
      const arrays one(r, step);
      std::memcpy(sum.all[i].bytes.data(), one.all[i].bytes.data(), one.all[i].bytes.size());
      tree.take(sum.all[i].bytes.data(), [&](std::byte* to, const std::byte* from) {
        for (std::size_t k = 0; k < sum.all[i].bytes.size() / size_of(sum.all[i].type); ++k)
          if (sum.all[i].type == float64)
            reinterpret_cast<double*>(to)[k] += reinterpret_cast<const double*>(from)[k];
          else
            reinterpret_cast<float*>(to)[k] += reinterpret_cast<const float*>(from)[k];
      });
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("arrays become their sum over all ranks, in the tree of their number, whatever the buckets") {
  for (const int size : {1, 2, 3, 5})
    for (const std::size_t bucket_bytes : {std::size_t{1} << 12, std::size_t{50000}, std::size_t{4} << 20}) {
      CAPTURE(size);
      CAPTURE(bucket_bytes);
      const arrays expected[] = {tree_of(size, 0), tree_of(size, 1)};
      on_each(size, [&](rank_network& here) {
        arrays own(here.rank(), 0);
        gradient_exchange sum(here, own.all, bucket_bytes, false);
        for (int step = 0; step < 2; ++step) {
          own.fill(here.rank(), step);
          sum.begin();
          for (std::size_t i = own.all.size(); i-- > 0;) sum.ready(i);
          sum.finish();
          CHECK(own == expected[step]);
        }
      });
    }
}

TEST_CASE("buckets have about their size; arrays that follow each other share them") {
  on_each(1, [](rank_network& here) {
    const arrays own(0, 0);
    CHECK(gradient_exchange(here, own.all, std::size_t{4} << 20, false).bucket_count() == 5);
    CHECK(gradient_exchange(here, own.all, 100000, false).bucket_count() == 7);
    gradient_exchange lacks(here, own.all, 100, false);
    lacks.begin();
    CHECK(says(message_of(status::internal, [&] { lacks.finish(); }), "lacks"));
  });
}

TEST_CASE("bytes of all ranks are gathered in their order, and those of rank 0 go to all") {
  on_each(4, [](rank_network& here) {
    const auto r = static_cast<std::size_t>(here.rank());
    const std::vector<std::byte> own(r, std::byte{static_cast<unsigned char>(here.rank())});
    const std::vector<std::size_t> sizes{0, 1, 2, 3};
    const auto all = detail::gather(here, own, sizes);
    CHECK(all ==
          std::vector<std::byte>{std::byte{1}, std::byte{2}, std::byte{2}, std::byte{3}, std::byte{3}, std::byte{3}});
    const std::byte one{static_cast<unsigned char>(10 + here.rank())};
    CHECK(detail::gather(here, std::span(&one, 1)) ==
          std::vector<std::byte>{std::byte{10}, std::byte{11}, std::byte{12}, std::byte{13}});
    std::vector<std::byte> told(here.rank() == 0 ? 1000 : 3, one);
    detail::broadcast(here, told);
    CHECK(told == std::vector<std::byte>(1000, std::byte{10}));
  });
}
