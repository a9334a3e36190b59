#include "gradus/checkpoint/delta.hpp"

#include <doctest/doctest.h>

#include "gradus/codec/flat.hpp"

using namespace gradus;

namespace {
using file_bytes = std::vector<std::byte>;

struct bytes_blob final : blob {
  std::vector<std::byte> value;
  void save(std::vector<std::byte>& out) const override { out = value; }
  void load(std::span<const std::byte> in) override { value.assign(in.begin(), in.end()); }
};

// A table with a slot, a bias, a step, an input position. A step touches a few rows and everything else.
struct model {
  std::vector<float> emb = std::vector<float>(300), slot = std::vector<float>(300), small = std::vector<float>(4);
  float bias[3] = {};
  std::int64_t global_step = 0;
  bytes_blob position;
  state_list list;
  row_tracker tracker;
  touched_rows& touched = tracker.table("emb", 100);
  std::uint32_t random = 1;

  model() {
    list.tensor("emb", {100, 3}, std::span<float>(emb));
    list.tensor("emb/Adagrad", {100, 3}, std::span<float>(slot));
    list.tensor("small", {4}, std::span<float>(small));
    list.tensor("bias", {3}, std::span<float>(bias));
    list.scalar("global_step", global_step);
    list.dynamic("position", position);
    tracker.follows("emb/Adagrad", "emb");
    tracker.table("small", 4);
  }
  model(const model&) = delete;

  void step() {
    ++global_step;
    for (int i = 0; i < 4; ++i) {
      random = random * 1664525u + 1013904223u;
      const std::int64_t row = (random >> 8) % 100;
      touched.mark(row);
      for (std::size_t j = 0; j < 3; ++j) {
        emb[static_cast<std::size_t>(row) * 3 + j] += static_cast<float>(global_step) / 3;
        slot[static_cast<std::size_t>(row) * 3 + j] -= 0.5f;
      }
    }
    tracker.rows_of("small").mark(global_step % 4), small[static_cast<std::size_t>(global_step % 4)] += 1;
    for (float& b : bias) b += 0.25f;
    position.value.assign(static_cast<std::size_t>(global_step % 5), std::byte{9});
  }
};

// Everything there is, whole.
owned_snapshot whole(const model& m, metadata about = {}) {
  owned_snapshot out{{m.global_step, std::move(about), {}}};
  for (const auto& e : m.list.entries()) {
    if (e.dynamic != nullptr) {
      file_bytes b;
      e.dynamic->save(b);
      const auto size = static_cast<std::int64_t>(b.size());
      out.content.records.push_back({e.name, uint8, {size}, out.own(b), true});
    } else {
      out.content.records.push_back({e.name, e.type, e.dims, e.bytes, false});
    }
  }
  return out;
}
file_bytes written(const snapshot& s) {
  const auto file = flat_binary{}.encode(s);
  file_bytes out;
  for (const auto piece : file.files.front().pieces) out.insert(out.end(), piece.begin(), piece.end());
  return out;
}

// A run whose base and deltas are "files", read again where they are used.
struct run {
  model m;
  std::vector<std::string> names{"base"};
  std::vector<file_bytes> files;
  std::vector<file_bytes> whole_files;  // what a whole save would have written at each of these
  delta_chain chain;

  explicit run(int deltas, int steps = 3) {
    for (int i = 0; i < steps; ++i) m.step();
    const auto base = whole(m, {{"model", "x"}});
    files.push_back(written(base.content)), whole_files.push_back(files.back());
    chain = begin_chain({"base", &base.content});
    m.tracker.clear();
    for (int d = 1; d <= deltas; ++d) {
      for (int i = 0; i < steps; ++i) m.step();
      const auto marks = m.tracker.take();
      const auto delta = make_delta(m.list, marks, chain, m.global_step, {{"model", "x"}});
      names.push_back(text("delta ", d));
      files.push_back(written(delta.content));
      whole_files.push_back(written(whole(m, {{"model", "x"}}).content));
      chain = extended(chain, {names.back(), &delta.content});
    }
  }
};
// The files of a run, decoded.
struct opened {
  std::deque<decoded> contents;
  std::vector<named_snapshot> deltas;
  named_snapshot base;

  explicit opened(const run& r, std::vector<std::size_t> order = {}) {
    for (std::size_t i = 0; i < r.files.size(); ++i) {
      contents.push_back(decode_bytes(flat_binary{}, r.files[i]));
      REQUIRE(contents.back().ok());
    }
    base = {r.names[0], &contents[0].content};
    if (order.empty())
      for (std::size_t i = 1; i < r.files.size(); ++i) order.push_back(i);
    for (const auto i : order) deltas.push_back({r.names[i], &contents[i].content});
  }
};
std::string refusal(status kind, const opened& o) {
  model m;
  m.bias[0] = 77;
  const auto before = written(whole(m).content);
  std::string out;
  try {
    restore_deltas(m.list, o.base, o.deltas);
  } catch (const error& e) {
    CHECK(e.kind() == kind);
    out = e.what();
  }
  CHECK_FALSE(out.empty());
  CHECK(written(whole(m).content) == before);
  CHECK_THROWS_AS(compact(o.base, o.deltas), error);
  return out;
}
bool says(const std::string& message, std::string_view part) {
  INFO(message);
  return message.find(part) != std::string::npos;
}
}  // namespace

TEST_CASE("three deltas on a base are a whole save, bit for bit") {
  const run r(3);
  for (std::size_t n = 0; n <= 3; ++n) {
    opened o(r);
    o.deltas.resize(n);
    model m;
    const auto chain = restore_deltas(m.list, o.base, o.deltas, {.model = "x"});
    CHECK(written(whole(m, {{"model", "x"}}).content) == r.whole_files[n]);
    CHECK(chain.deltas == static_cast<std::int64_t>(n));
    CHECK(written(compact(o.base, o.deltas).content) == r.whole_files[n]);
    if (n == 3) CHECK((chain.last.step == r.chain.last.step && chain.last.checksum == r.chain.last.checksum));
  }
}

TEST_CASE("a delta holds the rows that changed, and what is not a table whole") {
  const run r(1, 1);
  const opened o(r);
  const auto& s = *o.deltas[0].content;
  CHECK(is_delta(s));
  CHECK_FALSE(is_delta(*o.base.content));
  std::vector<std::string> names;
  for (const auto& rec : s.records) names.push_back(text(rec.name, ' ', name_of(rec.type), to_text(rec.dims)));
  // `small` is a float of 4 bytes a row: an index and a value take no more than the table.
  CHECK(names == std::vector<std::string>{"emb:rows int64[4]", "emb:values float32[4, 3]", "emb/Adagrad:rows int64[4]",
                                          "emb/Adagrad:values float32[4, 3]", "small:rows int64[1]",
                                          "small:values float32[1]", "bias float32[3]", "global_step int64[]",
                                          "position uint8[2]"});
  CHECK(s.about.at("delta") == "1");
  CHECK(s.about.at("base") == "base");
  CHECK(s.about.at("base_step") == "1");
  CHECK(s.about.at("after_step") == "1");
  CHECK(s.about.at("model") == "x");
}

TEST_CASE("checksums are those of docs/formats/delta.md, computed elsewhere") {
  float w[] = {1, -2};
  std::int64_t step = 5;
  snapshot base{5, {{"codec", "any"}}, {}};
  base.records = {{"w", float32, {2}, std::as_bytes(std::span(w)), false},
                  {"global_step", int64, {}, std::as_bytes(std::span(&step, 1)), false}};
  CHECK(content_checksum(base) == 2241836118u);
  state_list list;
  list.tensor("w", {2}, std::span<float>(w));
  row_tracker tracker;
  tracker.table("w", 2).mark(1);
  // An index and a value of a float take more than the table: whole, were it not forged here.
  auto d = make_delta(list, tracker, begin_chain({"a", &base}), 6);
  CHECK(d.content.records[0].name == "w");
  const std::int64_t row = 1;
  d.content.records = {{"w:values", float32, {1}, std::as_bytes(std::span(w).last(1)), false},
                       {"w:rows", int64, {1}, std::as_bytes(std::span(&row, 1)), false}};
  CHECK(content_checksum(d.content) == 709375049u);
}

TEST_CASE("a delta of everything, of nothing, of a copy") {
  run r(0);
  r.m.touched.mark_all();
  CHECK(make_delta(r.m.list, r.m.tracker, r.chain, 4).content.records[0].name == "emb");
  r.m.tracker.clear();
  auto d = make_delta(r.m.list, r.m.tracker, r.chain, 4);
  CHECK(d.content.records.size() == 3);
  opened o(r);
  o.deltas.push_back({"d", &d.content});
  model m;
  restore_deltas(m.list, o.base, o.deltas);
  CHECK(m.emb == r.m.emb);

  d = make_delta(r.m.list, r.m.tracker, r.chain, 4, {}, true);
  r.m.step();  // what was copied stays
  o.deltas[0].content = &d.content;
  restore_deltas(m.list, o.base, o.deltas);
  CHECK(m.global_step == 3);
  CHECK(m.bias[0] == 0.75f);
}

TEST_CASE("deltas go on from a restore, and after a save that failed") {
  const run r(2);
  const opened o(r);
  model m;
  auto chain = restore_deltas(m.list, o.base, o.deltas);
  m.step();
  const auto lost = m.tracker.take();
  make_delta(m.list, lost, chain, m.global_step);
  m.tracker.put_back(lost);
  m.step();
  const auto d = make_delta(m.list, m.tracker.take(), chain, m.global_step);
  auto deltas = o.deltas;
  deltas.push_back({"delta 3", &d.content});
  model again;
  CHECK(restore_deltas(again.list, o.base, deltas).deltas == 3);
  CHECK(written(whole(again).content) == written(whole(m).content));
}

TEST_CASE("out of order, without one, of another base: refused") {
  const run r(3);
  CHECK(says(refusal(status::failed_precondition, opened(r, {1, 3, 2})),
             "\"delta 3\" cannot be applied: it is delta 3, which follows \"delta 2\" of step 9, but comes here as "
             "delta 2 after \"delta 1\" of step 6"));
  refusal(status::failed_precondition, opened(r, {2, 3}));
  refusal(status::failed_precondition, opened(r, {1, 1}));
  CHECK(says(refusal(status::failed_precondition, opened(r, {1, 0})), "it is a whole checkpoint"));
  auto o = opened(r);
  o.base = o.deltas[0];
  CHECK(says(refusal(status::failed_precondition, o), "\"delta 1\" is a delta of \"base\""));
  const run other(1, 2);
  opened mine(r), others(other);
  mine.deltas = others.deltas;
  CHECK(says(refusal(status::failed_precondition, mine), "its base is \"base\" of step 2, not \"base\" of step 3"));
}

TEST_CASE("damage is found and named: by the codec, and without it") {
  const run r(3);
  for (std::size_t damaged = 0; damaged < r.files.size(); ++damaged) {
    auto file = r.files[damaged];
    file[file.size() - 1] ^= std::byte{4};
    CHECK_FALSE(decode_bytes(flat_binary{}, file).ok());
    // A codec that does not check: every record of every file, one bit.
    opened o(r);
    auto& records = o.contents[damaged].content.records;
    for (auto& rec : records) {
      if (rec.bytes.empty()) continue;
      file_bytes changed(rec.bytes.begin(), rec.bytes.end());
      changed[changed.size() / 2] ^= std::byte{16};
      const auto before = std::exchange(rec.bytes, changed);
      const auto message = refusal(status::data_loss, o);
      CHECK(says(message, '"' + r.names[damaged] + '"'));
      rec.bytes = before;
    }
  }
}

TEST_CASE("forged rows are refused, though the checksum is right") {
  const run r(1, 1);
  const auto forge = [&](auto change) {
    opened o(r);
    auto& s = o.contents[1].content;
    change(s);
    s.about["delta_checksum"] = text(content_checksum(s));
    return refusal(status::data_loss, o);
  };
  const auto with_rows = [&](std::vector<std::int64_t> rows) {
    return forge([&](snapshot& s) { s.records[0].bytes = std::as_bytes(std::span(rows)); });
  };
  CHECK(says(with_rows({1, 2, 3, 100}), "row 100 after row 3"));
  CHECK(says(with_rows({-1, 2, 3, 4}), "row -1"));
  CHECK(says(with_rows({1, 3, 3, 4}), "row 3 after row 3"));
  CHECK(says(forge([](snapshot& s) { s.records[1].name = "emb:other"; }), "not its other half"));
  CHECK(says(forge([](snapshot& s) { s.records[0].name = "x:rows", s.records[1].name = "x:values"; }),
             "no table is before it"));
  CHECK(says(forge([](snapshot& s) { s.records[1].dims = {3, 4}; }), "float32[3, 4] as values of int64[4] rows"));
  CHECK(says(forge([](snapshot& s) { s.records[1].type = int32; }), "int32[4, 3] as values"));
}

TEST_CASE("what cannot be a delta, and what does not fit the model") {
  const run r(1);
  model m;
  m.tracker.table("bias", 4);
  CHECK_THROWS_WITH_AS(make_delta(m.list, m.tracker, r.chain, 1), doctest::Contains("\"bias\" is tracked with 4 rows"),
                       invalid_argument);
  float x = 0;
  model named;
  named.list.scalar("x:rows", x);
  CHECK_THROWS_AS(make_delta(named.list, named.tracker, r.chain, 1), invalid_argument);
  model more;
  more.list.scalar("x", x);
  const opened o(r);
  CHECK_THROWS_WITH_AS(restore_deltas(more.list, o.base, o.deltas), doctest::Contains("missing in the file: \"x\""),
                       not_found);
}
