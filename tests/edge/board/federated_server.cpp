// The server of eight boards in federated rounds (rounds.py), whose lines cut, flip, repeat and confuse frames, and the
// same rounds in this process: equal bits. federated_server <folder with a folder for each board>
#include <gradus/cluster/federated_server.hpp>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "federated.hpp"

using octets = std::vector<std::byte>;
using trainer_type = decltype(federated::make_trainer());

namespace {
constexpr int boards = 8;
[[noreturn]] void fail(const char* why) { std::perror(why), std::exit(1); }

struct line {
  int to = -1, from = -1;
  octets last;      // what came in the round before
  octets of_round;  // what has come in this one
  void write(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::write(to, bytes.data(), bytes.size());
      if (n <= 0) fail("write");
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
  }
};
std::unique_ptr<trainer_type> fresh() {
  return std::unique_ptr<trainer_type>(new trainer_type(federated::make_trainer()));
}
template <class Trainer>
std::vector<float> numbers(Trainer& trainer) {
  std::vector<float> all;
  struct {
    std::vector<float>& all;
    void tensor(std::string_view, gradus::dtype, const gradus::extents&, std::span<std::byte> v) {
      const auto* w = reinterpret_cast<const float*>(v.data());
      all.insert(all.end(), w, w + v.size() / sizeof(float));
    }
  } list{all};
  trainer.list_variables(list);
  return all;
}
template <class Trainer>
void assign(Trainer& trainer, const std::vector<float>& values) {
  struct {
    const float* from;
    void tensor(std::string_view, gradus::dtype, const gradus::extents&, std::span<std::byte> v) {
      std::memcpy(v.data(), from, v.size()), from += v.size() / sizeof(float);
    }
  } list{values.data()};
  trainer.list_variables(list);
}

// The same rounds without boards and without frames.
std::vector<float> in_one_process() {
  auto model = fresh();
  model->initialize(99);
  std::vector<std::unique_ptr<trainer_type>> all;
  for (int m = 0; m < boards; ++m) all.push_back(fresh()), all.back()->initialize(static_cast<std::uint64_t>(m));
  for (std::uint32_t round = 1; round <= federated::rounds; ++round) {
    const std::vector<float> start = numbers(*model);
    std::vector<double> sum(start.size());
    double total = 0;
    for (int m = 0; m < boards; ++m) {
      const auto number = static_cast<std::uint32_t>(m);
      if (federated::is_dead(number, round)) continue;
      auto& trainer = *all[number];
      assign(trainer, start);
      federated::learn(trainer, number, round);
      if (!federated::is_finite(number, round)) continue;
      const double examples = federated::examples_of(number);
      const std::vector<float> w = numbers(trainer);
      for (std::size_t i = 0; i < w.size(); ++i) sum[i] += static_cast<double>(w[i]) * examples;
      total += examples;
    }
    std::vector<float> mean(start.size());
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = static_cast<float>(sum[i] / total);
    assign(*model, mean);
  }
  return numbers(*model);
}
}  // namespace

int main(int, char** arguments) {
  using enum gradus::federated_answer;
  const std::string folder = arguments[1];
  std::vector<line> lines(boards);
  for (int m = 0; m < boards; ++m) {
    const std::string at = folder + "/" + std::to_string(m);
    line& l = lines[static_cast<std::size_t>(m)];
    l.to = ::open((at + "/in").c_str(), O_RDWR), l.from = ::open((at + "/out").c_str(), O_RDWR);
    if (l.to < 0 || l.from < 0) fail("open");
  }
  auto trainer = fresh();
  trainer->initialize(99);
  gradus::federated_server server(*trainer, {.members = boards, .most_examples = 1000});
  gradus::random_stream faults{.seed = 5};
  const auto below = [&](std::size_t n) { return faults.word() % n; };
  std::uint32_t left_out = 0;

  for (std::uint32_t round = 1; round <= federated::rounds; ++round) {
    const std::span<const std::byte> frame = server.begin_round();
    std::vector<bool> waits(boards);
    for (int m = 0; m < boards; ++m) {
      const auto number = static_cast<std::uint32_t>(m);
      line& l = lines[number];
      l.last = std::move(l.of_round), l.of_round.clear();
      const bool lives = !federated::is_dead(number, round);
      waits[number] = lives && federated::is_finite(number, round);   // what is not finite is not sent
      if (!lives && federated::is_dead(number, round - 1)) continue;  // it dies of the first
      if (m == 2) l.write(frame.first(1 + below(frame.size() - 1)));  // cut
      if (m == 7) l.write(lines[4].last);                             // another board's update: foreign
      l.write(frame);
    }
    bool flips = true;
    while (std::find(waits.begin(), waits.end(), true) != waits.end()) {
      std::vector<pollfd> all;
      for (const line& l : lines) all.push_back({l.from, POLLIN, 0});
      if (::poll(all.data(), all.size(), 60000) <= 0) return std::puts("no board said anything for a minute"), 1;
      for (int m = 0; m < boards; ++m) {
        const auto number = static_cast<std::size_t>(m);
        if ((all[number].revents & POLLIN) == 0) continue;
        line& l = lines[number];
        octets came(4096);
        const ssize_t n = ::read(l.from, came.data(), came.size());
        if (n <= 0) fail("read");
        came.resize(static_cast<std::size_t>(n));
        l.of_round.insert(l.of_round.end(), came.begin(), came.end());
        if (l.of_round.size() % frame.size() != 0) continue;  // a line that keeps a frame until it is whole
        octets whole(l.of_round.end() - static_cast<std::ptrdiff_t>(frame.size()), l.of_round.end());
        if (m == 1 && flips) whole[4 + below(whole.size() - 4)] ^= std::byte{16};
        if (m == 4) server.receive(m, l.last);
        if (m == 7) server.receive(m, lines[4].last);
        server.receive(m, whole);
        if (m == 3) server.receive(m, whole);
        if (m == 1 && flips) flips = false, l.write(server.frame());  // it is missed: once more
        waits[number] = !server.has(m);
      }
    }
    const auto r = server.end_round();
    if (!r.averaged) return std::puts("a round had no member"), 1;
    left_out += static_cast<std::uint32_t>(boards - r.members);
  }
  for (const line& l : lines) ::close(l.to);

  const std::vector<float> learned = numbers(*trainer), expected = in_one_process();
  bool right = std::memcmp(learned.data(), expected.data(), learned.size() * sizeof(float)) == 0;
  std::printf("%u rounds: %s as in one process; %u updates were left out\n", federated::rounds,
              right ? "the same bits" : "OTHER BITS", left_out);
  const auto check = [&](int m, gradus::federated_answer a, std::uint32_t times) {
    const std::uint32_t n = server.counts(m)[a];
    if (n == times) return;
    right = false;
    std::printf("board %d: %u frames for which \"%s\", expected %u\n", m, n, gradus::message_of(a), times);
  };
  for (int m = 0; m < boards; ++m) {
    check(m, damaged, m == 1 ? federated::rounds : 0);
    check(m, repeated, m == 3 ? federated::rounds : 0);
    check(m, late, m == 4 ? federated::rounds - 1 : 0);
    check(m, foreign, m == 7 ? federated::rounds - 1 : 0);
  }
  return right && left_out == federated::rounds - 7 + 1 ? 0 : 1;
}
