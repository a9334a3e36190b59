// sanitized in every run: it reads what strangers wrote
// compiled with: -Wno-mismatched-new-delete
#include "gradus/cluster/federated_server.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <limits>
#include <new>

#include "federated_rounds.hpp"

namespace {
long allocations = 0;
std::size_t allocated_bytes = 0;
}  // namespace
#if !defined(GRADUS_TEST_UNCOUNTED)  // ThreadSanitizer brings its own operator new
void* operator new(std::size_t n) {
  ++allocations, allocated_bytes += n;
  if (void* p = std::malloc(n)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
#endif

using namespace gradus;
using namespace federated_test;
using enum gradus::federated_answer;

namespace {
constexpr int members = 8;
std::uint32_t examples_of(int member, std::uint32_t round) {
  return static_cast<std::uint32_t>(member * 7 + 3) * round;
}
int steps_of(int member) { return 1 + member % 3; }

// The rounds in one process, without a frame: copies, and the mean as its definition has it. `there(m, round)`: whose
// update counts.
template <class There>
std::vector<float> without_frames(int rounds, There there) {
  board<> server(99);
  std::vector<std::unique_ptr<board<>>> boards;
  for (int m = 0; m < members; ++m) boards.push_back(std::make_unique<board<>>(static_cast<std::uint16_t>(m)));
  struct writing {
    const float* from;
    void tensor(std::string_view, dtype type, const extents&, std::span<std::byte> values) {
      if (type != float32) return;
      std::memcpy(values.data(), from, values.size());
      from += values.size() / 4;
    }
  };
  for (int round = 1; round <= rounds; ++round) {
    const auto r = static_cast<std::uint32_t>(round);
    const std::vector<float> model = server.numbers();
    std::vector<double> sum(model.size());
    double total = 0;
    for (int m = 0; m < members; ++m) {
      board<>& b = *boards[static_cast<std::size_t>(m)];
      writing list{model.data()};
      b.trainer.list_variables(list);
      b.learn(r * 100 + static_cast<std::uint32_t>(m), steps_of(m));
      if (!there(m, round)) continue;
      const std::vector<float> w = b.numbers();
      for (std::size_t i = 0; i < w.size(); ++i) sum[i] += static_cast<double>(w[i]) * examples_of(m, r);
      total += examples_of(m, r);
    }
    std::vector<float> mean(model.size());
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = static_cast<float>(sum[i] / total);
    writing list{mean.data()};
    server.trainer.list_variables(list);
  }
  return server.numbers();
}
}  // namespace

TEST_CASE("federated_server: twenty rounds of eight members have the bits of one process, in any order of arrival") {
  board<> leader(99);
  federated_server server(leader.trainer, {.members = members});
  std::vector<std::unique_ptr<board<>>> boards;
  for (int m = 0; m < members; ++m) boards.push_back(std::make_unique<board<>>(static_cast<std::uint16_t>(m)));
  std::mt19937 random(3);
  for (std::uint32_t round = 1; round <= 20; ++round) {
    const octets frame = copy(server.begin_round());
    std::vector<octets> streams(members);
    for (int m = 0; m < members; ++m) {
      board<>& b = *boards[static_cast<std::size_t>(m)];
      b.member.receive(frame);
      REQUIRE(b.member.has_round());
      CHECK(same_bits(b.numbers(), leader.numbers()));
      b.learn(round * 100 + static_cast<std::uint32_t>(m), steps_of(m));
      streams[static_cast<std::size_t>(m)] = b.update(examples_of(m, round));
      CHECK(!b.member.has_round());
    }
    std::vector<std::size_t> given(members);
    while (!server.is_complete()) {  // pieces of all, mixed
      const std::size_t m = random() % members;
      const std::size_t n = std::min<std::size_t>(random() % 90, streams[m].size() - given[m]);
      server.receive(static_cast<int>(m), std::span(streams[m]).subspan(given[m], n));
      given[m] += n;
    }
    const federated_report r = server.end_round();
    CHECK(r.averaged);
    CHECK(r.members == members);
    CHECK(r.round == round);
  }
  CHECK(same_bits(leader.numbers(), without_frames(20, [](int, int) { return true; })));
  for (int m = 0; m < members; ++m) {
    CHECK(server.counts(m)[taken] == 20);
    CHECK(server.counts(m).refused() == 0);
    CHECK(server.counts(m).skipped_bytes == 0);
  }
}

// One member's line is wrong in each of the ways; the round ends with the rest, and what came is counted.
TEST_CASE("federated_server: a member that is dead, flipped, cut, repeated, late, foreign or not finite is left out") {
  board<> leader(99);
  federated_server server(leader.trainer, {.members = members, .most_examples = 1000});
  std::vector<std::unique_ptr<board<>>> boards;
  for (int m = 0; m < members; ++m) boards.push_back(std::make_unique<board<>>(static_cast<std::uint16_t>(m)));
  octets before;  // member 3's update of the round before
  const auto there = [](int m, int round) { return m >= 7 || round != m + 2; };
  for (std::uint32_t round = 1; round <= 10; ++round) {
    const octets frame = copy(server.begin_round());
    for (int m = 0; m < members; ++m) {
      board<>& b = *boards[static_cast<std::size_t>(m)];
      b.member.receive(frame);
      b.learn(round * 100 + static_cast<std::uint32_t>(m), steps_of(m));
      octets sent = b.update(examples_of(m, round));
      const octets good = sent;
      if (!there(m, static_cast<int>(round))) {
        const std::size_t numbers = sent.size() - sizeof leader.room;
        switch (m) {
        case 0: sent.clear(); break;                                     // it is dead
        case 1: sent[numbers + 9] ^= std::byte{1}; break;                // flipped
        case 2: sent.resize(sent.size() / 2); break;                     // cut
        case 3: sent = before; break;                                    // late
        case 4: sent = forged(sent, [](auto& f) { f.run = 8; }); break;  // foreign
        case 5: {                                                        // not finite, with its checksum
          const float nan = std::numeric_limits<float>::quiet_NaN();
          std::memcpy(sent.data() + numbers, &nan, 4);
          sent = forged(sent, [&](auto& f) {
            f.crc = detail::crc32c_by_nibble(0, sent.data() + numbers, sent.size() - numbers);
          });
          break;
        }
        default: sent = forged(sent, [](auto& f) { f.examples = 1001; });
        }
      }
      server.receive(m, sent);
      if (m == 7) server.receive(m, sent);  // repeated, each time
      if (m == 3) before = good;
      CHECK(server.has(m) == there(m, static_cast<int>(round)));
    }
    CHECK(server.is_complete() == (round == 1 || round > 8));
    if (round == 4) server.reconnected(2);
    CHECK(server.end_round().members == (round == 1 || round > 8 ? 8 : 7));
  }
  CHECK(same_bits(leader.numbers(), without_frames(10, there)));
  const federated_answer expected[] = {damaged, damaged, damaged, late, foreign, bad_numbers, bad_examples, repeated};
  for (int m = 0; m < members; ++m) {
    CAPTURE(m);
    const auto& c = server.counts(m);
    CHECK(c[taken] == (m == 7 ? 10 : 9));
    CHECK(c.refused() == (m == 0 ? 0 : m == 7 ? 10 : 1));
    if (m != 0) CHECK(c[expected[m]] == c.refused());
  }
}

TEST_CASE("federated_server: frames of other models, versions, members and kinds are named") {
  board<> leader(99), one(1);
  board<6> other(1);
  federated_server server(leader.trainer, {.members = 2, .run = 5});
  const octets frame = copy(server.begin_round());
  one.member.receive(frame);
  one.learn(1, 1);
  const octets good = one.update(10);
  federated_server others(other.trainer, {.members = 2, .run = 5});
  other.member.receive(copy(others.begin_round()));
  struct trial {
    octets bytes;
    federated_answer answer;
  };
  const std::vector<trial> trials = {
      {other.update(10), another_model},
      {forged(good, [](auto& f) { f.fingerprint += 1; }), another_model},
      {forged(good, [](auto& f) { f.bytes += 4; }), another_model},
      {forged(good, [](auto& f) { f.bytes = 0xffffffff; }), another_model},
      {forged(good, [](auto& f) { f.version_of = 2; }), newer_version},
      {forged(good, [](auto& f) { f.version_of = 0; }), foreign},
      {forged(good, [](auto& f) { f.member = 0; }), foreign},
      {forged(good, [](auto& f) { f.run = 1; }), foreign},
      {forged(good, [](auto& f) { f.round = 2; }), early},
      {forged(good, [](auto& f) { f.round = 0; }), late},
      {forged(good, [](auto& f) { f.model_crc ^= 1; }), late},
      {forged(good, [](auto& f) { f.examples = 0; }), bad_examples},
      {forged(good, [](auto& f) { f.examples = 0xffffffff; }), bad_examples},
      {frame, foreign},
      {good, taken},
      {good, repeated},
  };
  federated_counts expected;
  for (const trial& t : trials) {
    server.receive(1, t.bytes);
    expected.add(t.answer);
    for (int k = 0; k < 10; ++k) {
      CAPTURE(message_of(t.answer));
      CHECK(server.counts(1).of[k] == expected.of[k]);
    }
  }
  server.end_round();
  server.receive(1, good);
  CHECK(server.counts(1)[late] == expected[late] + 1);
  CHECK(same_bits(leader.numbers(), one.numbers()));
}

// An update that has begun when its round ends is late.
TEST_CASE("federated_server: a round that ends in the midst of a frame") {
  board<> leader(99), one(0);
  federated_server server(leader.trainer, {.members = 1});
  one.member.receive(copy(server.begin_round()));
  one.learn(1, 1);
  const octets sent = one.update(10);
  const std::vector<float> before = leader.numbers();
  server.receive(0, std::span(sent).first(sent.size() - 1));
  const federated_report r = server.end_round();
  CHECK(!r.averaged);
  CHECK(r.members == 0);
  server.receive(0, std::span(sent).last(1));
  CHECK(server.counts(0)[late] == 1);
  CHECK(same_bits(leader.numbers(), before));
  one.member.receive(copy(server.begin_round()));
  CHECK(one.member.round() == 2);
}

TEST_CASE("federated_server: fewer than least_members leave the model as it is; a restarted server goes on") {
  board<> leader(99), one(0);
  federated_server server(leader.trainer, {.members = 3, .least_members = 2});
  const std::vector<float> before = leader.numbers();
  one.member.receive(copy(server.begin_round()));
  one.learn(1, 1);
  server.receive(0, one.update(10));
  CHECK(!server.end_round().averaged);
  CHECK(same_bits(leader.numbers(), before));

  // A frame that answers to a model that was rolled back has the round's number, and another origin.
  const octets old = copy(server.begin_round());
  one.member.receive(old);
  one.learn(2, 1);
  const octets stale = one.update(10);
  server.end_round();

  struct {
    std::int64_t seen = 0, give = 0;
    void scalar(std::string_view name, std::int64_t& n) {
      CHECK(name == "federated_round");
      seen = n;
      if (give != 0) n = give;
    }
  } list;
  server.remembers(list);
  CHECK(list.seen == 2);
  federated_server again(leader.trainer, {.members = 3});
  list.give = 41;
  again.remembers(list);
  one.member.receive(copy(again.begin_round()));
  CHECK(one.member.round() == 42);
  CHECK_THROWS_WITH_AS(again.remembers(list), "federated_server: round 42 runs; save and restore between two rounds",
                       failed_precondition);
  again.end_round();
  list.give = 1;
  again.remembers(list);
  leader.trainer.variable<"out/bias">()[0] += 1;
  again.begin_round();
  again.receive(0, stale);
  CHECK(again.counts(0)[late] == 1);
  again.end_round();
  list.give = -5;
  again.remembers(list);
  CHECK_THROWS_WITH_AS(again.begin_round(),
                       "federated_server: no round comes after number -5; restore what remembers wrote, or begin "
                       "another run",
                       failed_precondition);
}

// Adding up from 0.0 would make -0.0 another number.
TEST_CASE("federated_server: the mean of one member is that member's bits") {
  board<> leader(99), one(0);
  federated_server server(leader.trainer, {.members = 1});
  one.member.receive(copy(server.begin_round()));
  one.trainer.variable<"out/bias">()[0] = -0.0f;
  one.trainer.variable<"hidden/kernel">()[0] = 0x1p-149f;
  one.trainer.variable<"hidden/kernel">()[1] = -std::numeric_limits<float>::max();
  server.receive(0, one.update(1u << 29));
  CHECK(server.end_round().averaged);
  CHECK(same_bits(leader.numbers(), one.numbers()));
}

// What the compiler cannot see: a list of variables.
namespace {
struct listed {
  struct one {
    std::string_view name;
    dtype type;
    std::span<std::byte> values;
  };
  std::vector<one> all;
  bool ready = true;
  bool initialized() const { return ready; }
  template <class List>
  void list_variables(List& list) {
    for (const one& v : all)
      list.tensor(v.name, v.type, {static_cast<std::int64_t>(v.values.size() / size_of(v.type))}, v.values);
  }
};
}  // namespace
TEST_CASE("federated_server: variables that cannot be averaged are refused") {
  std::vector<std::byte> room(64);
  listed doubles{{{"w", float32, room}, {"d", float64, room}}}, none{{{"n", int64, room}}};
  listed halves{{{"w", float32, room}, {"h", bfloat16, room}}}, others{{{"w", float32, room}, {"f", float16, room}}};
  listed huge{{{"a", float32, std::span(room.data(), std::size_t{1} << 30)},
               {"b", float32, std::span(room.data(), std::size_t{1} << 30)}}};
  listed empty{{{"w", float32, room}}, false};
  CHECK_THROWS_WITH_AS(federated_server(doubles, {}),
                       "federated_server: variable \"d\" is float64; rounds exchange float32, and a mean without it "
                       "would be half a model; make it float32",
                       invalid_argument);
  CHECK_THROWS_WITH_AS(federated_server(halves, {}),
                       "federated_server: variable \"h\" is bfloat16; rounds exchange float32, and a mean without it "
                       "would be half a model; make it float32",
                       invalid_argument);
  CHECK_THROWS_AS(federated_server(others, {}), invalid_argument);
  CHECK_THROWS_WITH_AS(federated_server(none, {}),
                       "federated_server: the model has no variable of float32, so there is nothing to average",
                       invalid_argument);
  CHECK_THROWS_WITH_AS(federated_server(huge, {}),
                       "federated_server: the model has 2147483648 bytes of variables; a frame holds less than 2 GiB",
                       invalid_argument);
  CHECK_THROWS_WITH_AS(federated_server(empty, {}),
                       "federated_server: the variables have no values; call initialize or restore a checkpoint first",
                       failed_precondition);
}

TEST_CASE("federated rounds: the order of variables is part of the model") {
  std::vector<std::byte> room(64);
  const auto fingerprint = [&](std::vector<listed::one> all) {
    detail::federated_measure m;
    listed{std::move(all)}.list_variables(m);
    return m.fingerprint;
  };
  const listed::one a{"a", float32, room}, b{"b", float32, room}, step{"n", int64, room};
  CHECK(fingerprint({a, b}) != fingerprint({b, a}));
  CHECK(fingerprint({a, step, b}) == fingerprint({a, b}));
  CHECK(fingerprint({a, a}) != fingerprint({b, b}));
}

// Each head costs its own bytes, not those of the numbers that do not follow: 2,000 frames of a large model, each cut
// behind its head, and one that is whole. (With a checksum for each, this took minutes.)
TEST_CASE("federated_server: many cut frames of a large model") {
  std::vector<std::byte> values(1 << 20);
  listed large{{{"w", float32, values}}};
  federated_server server(large, {.members = 1});
  const octets model = copy(server.begin_round());
  const octets whole = forged(model, [](auto& f) { f.kind_of = f.update, f.member = 0, f.examples = 5; });
  for (int i = 0; i < 40000; ++i) server.receive(0, std::span(whole).first(64));
  CHECK(!server.has(0));
  CHECK(server.counts(0)[damaged] == 39999);
  server.receive(0, whole);
  CHECK(server.has(0));
  CHECK(server.counts(0)[damaged] == 40000);
}

// Neither end allocates on the word of a frame, nor for a good one: a server's memory is one model for each member and
// one frame, and it is there before the first byte comes.
TEST_CASE("federated rounds: no length of a frame allocates anything, and the server's memory is that of its models") {
  constexpr std::size_t model_bytes = 1 << 20, members_here = 2;
  std::vector<std::byte> values(model_bytes);
  listed large{{{"w", float32, values}}};
  std::size_t before = allocated_bytes;
  federated_server server(large, {.members = members_here});
  const std::size_t taken_at_first = allocated_bytes - before;
  CHECK(taken_at_first < (members_here + 1) * model_bytes + 4096);
#if !defined(GRADUS_TEST_UNCOUNTED)
  CHECK(taken_at_first > (members_here + 1) * model_bytes);
#endif
  board<> leader(99), one(0);
  federated_server small(leader.trainer, {.members = 1});
  const octets first = copy(small.begin_round());
  const octets model = copy(server.begin_round());
  const octets good = forged(model, [](auto& f) { f.kind_of = f.update, f.member = 1, f.examples = 5; });
  std::vector<octets> hostile;
  for (const octets& whole : {good, forged(first, [](auto& f) { f.round = 2; })})
    for (const std::uint32_t bytes : {0u, 1u, 4u, 65536u, 0x7fffffffu, 0x80000000u, 0xfffffffcu, 0xffffffffu}) {
      hostile.push_back(forged(whole, [&](auto& f) { f.bytes = bytes; }));
      hostile.push_back(forged(whole, [&](auto& f) { f.bytes = bytes, f.fingerprint ^= 1; }));
      hostile.push_back(forged(whole, [&](auto& f) { f.bytes = bytes, f.examples = 0xffffffff; }));
      hostile.push_back(octets(hostile.back().begin(), hostile.back().begin() + 64));  // and then nothing, or the next
    }
  long calls_before = allocations;
  for (const octets& h : hostile) {
    for (int m = 0; m < static_cast<int>(members_here); ++m) server.receive(m, h);
    small.receive(0, h);
    one.member.receive(h);
  }
  const long calls_of_hostile = allocations - calls_before;
  CHECK(calls_of_hostile == 0);
  CHECK(!server.has(0));
  CHECK(!server.has(1));
  CHECK(!small.has(0));
  CHECK(server.counts(1)[another_model] > 20);
  // So do a good frame, and the end of a round and the beginning of the next.
  calls_before = allocations;
  for (int k = 0; k < 2 && !server.has(1); ++k) server.receive(1, good);
  const bool had = server.has(1), averaged = server.end_round().averaged;
  server.begin_round();
  const long calls_of_good = allocations - calls_before;
  CHECK(calls_of_good == 0);
  CHECK(had);
  CHECK(averaged);
}

TEST_CASE("federated_server: what cannot be led is refused") {
  board<> leader(99);
  const auto made = [&](const federated_options& o) { return federated_server(leader.trainer, o); };
  CHECK_THROWS_WITH_AS(made({.members = 0}), "federated_options: members is 0; give 1 to 65534", invalid_argument);
  CHECK_THROWS_WITH_AS(made({.members = 65535}), "federated_options: members is 65535; give 1 to 65534",
                       invalid_argument);
  CHECK_THROWS_WITH_AS(made({.members = 2, .least_members = 3}),
                       "federated_options: least_members is 3; give 1 to 2, the number of members", invalid_argument);
  CHECK_THROWS_WITH_AS(made({.most_examples = 0}), "federated_options: most_examples is 0; give 1 to 536870912",
                       invalid_argument);
  auto server = made({.members = 2});
  CHECK_THROWS_WITH_AS(server.receive(2, {}), "federated_server: there is no member 2; they are 0 to 1",
                       invalid_argument);
  CHECK_THROWS_WITH_AS(server.end_round(), "federated_server: no round runs; begin_round comes first",
                       failed_precondition);
  CHECK_THROWS_AS(server.frame(), failed_precondition);
  server.begin_round();
  CHECK_THROWS_WITH_AS(server.begin_round(), "federated_server: round 1 still runs; end_round comes first",
                       failed_precondition);
  server.end_round();
  leader.trainer.variable<"out/bias">()[0] = std::numeric_limits<float>::infinity();
  CHECK_THROWS_WITH_AS(server.begin_round(),
                       "federated_server: the model has numbers that are infinite or NaN, which members refuse; "
                       "initialize the trainer's variables, or restore a checkpoint",
                       failed_precondition);
  CHECK(server.round() == 1);
}

// Ten thousand frames with faults of every kind, to the server and to a member: no number changes but by a frame that
// is whole, and every whole one after them is found.
TEST_CASE("federated rounds: ten thousand mutated frames harm neither side") {
  std::mt19937 random(20261127);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  board<> leader(99), one(0);
  federated_server server(leader.trainer, {.members = 1});
  const octets first = copy(server.begin_round());
  one.member.receive(first);
  one.learn(1, 2);
  const octets update = one.update(10);
  std::uint32_t run = 77;
  one.member.receive(forged(first, [&](auto& f) { f.run = run, f.round = 9; }));
  REQUIRE(one.member.round() == 9);
  const std::vector<float> held = one.numbers(), model = leader.numbers();

  const auto mutated = [&](const octets& whole) {
    octets m = whole;
    for (std::size_t k = 1 + below(3); k != 0; --k) switch (below(6)) {
      case 0: m[below(m.size())] ^= static_cast<std::byte>(1u << below(8)); break;
      case 1: m.resize(1 + below(m.size())); break;
      case 2: m.erase(m.begin(), m.begin() + static_cast<std::ptrdiff_t>(below(m.size()))); break;
      case 3:
        m.insert(m.begin() + static_cast<std::ptrdiff_t>(below(m.size())), static_cast<std::byte>(random()));
        break;
      case 4:
        for (std::size_t i = below(m.size()), n = below(40); i < m.size() && n != 0; ++i, --n)
          m[i] = static_cast<std::byte>(random());
        break;
      default: {  // a head inside
        const std::size_t at = below(m.size());
        m.insert(m.begin() + static_cast<std::ptrdiff_t>(at), whole.begin(),
                 whole.begin() + static_cast<std::ptrdiff_t>(1 + below(whole.size() - 1)));
      }
      }
    return m;
  };
  int whole_ones = 0;
  for (int i = 0; i < 10000; ++i) {
    // The frames before mutation would be taken: a new round for the member, and the server's round is young.
    const octets next = forged(first, [&](auto& f) { f.run = run, f.round = 10; });
    const octets to_member = mutated(next), to_server = mutated(update);
    const auto count = [](const octets& in, const octets& frame) {
      return std::search(in.begin(), in.end(), frame.begin(), frame.end()) != in.end();
    };
    const bool member_whole = count(to_member, next), server_whole = count(to_server, update);
    whole_ones += member_whole + server_whole;
    for (std::size_t at = 0; at < to_member.size();) {
      const std::size_t n = std::min(to_member.size() - at, 1 + below(200));
      one.member.receive(std::span(to_member).subspan(at, n)), at += n;
    }
    for (std::size_t at = 0; at < to_server.size();) {
      const std::size_t n = std::min(to_server.size() - at, 1 + below(200));
      server.receive(0, std::span(to_server).subspan(at, n)), at += n;
    }
    if (!member_whole) REQUIRE(same_bits(one.numbers(), held));
    if (!server_whole) REQUIRE(!server.has(0));
    REQUIRE(same_bits(leader.numbers(), model));
    // A whole frame behind all this is found, at the latest when what began before it has proved to be none.
    if (i % 50 == 0 || member_whole) {
      ++run;
      for (int k = 0; k < 2 && one.member.run() != run; ++k)
        one.member.receive(forged(first, [&](auto& f) { f.run = run, f.round = 9; }));
      REQUIRE(one.member.run() == run);
      REQUIRE(same_bits(one.numbers(), model));
    }
    if (i % 50 == 0 || server_whole) {
      for (int k = 0; k < 2 && !server.has(0); ++k) server.receive(0, update);
      REQUIRE(server.has(0));
      // The next round, and the one after it has this one's number again: the update stays good.
      server.end_round();
      struct {
        void scalar(std::string_view, std::int64_t& n) { n = 0; }
      } back;
      server.remembers(back);
      struct {
        const float* from;
        void tensor(std::string_view, dtype type, const extents&, std::span<std::byte> v) {
          if (type == float32) std::memcpy(v.data(), from, v.size()), from += v.size() / 4;
        }
      } undo{model.data()};
      leader.trainer.list_variables(undo);
      server.begin_round();
    }
  }
  CHECK(whole_ones < 2500);
}
