#include "gradus/checkpoint/vocab.hpp"

#include <doctest/doctest.h>

#include "gradus/testing/faulty_files.hpp"

using namespace gradus;
using gradus::testing::faulty_files;

namespace {
using floats = std::vector<float>;
using ids = std::vector<std::int64_t>;

// 1, 2, 3, ... over all calls; remembers the shapes it was asked for.
struct counting {
  std::shared_ptr<float> last = std::make_shared<float>(0.0f);
  std::shared_ptr<std::vector<extents>> asked = std::make_shared<std::vector<extents>>();
  void operator()(const extents& dims, std::span<float> out) const {
    asked->push_back(dims);
    REQUIRE(static_cast<std::size_t>(count(dims)) == out.size());
    for (float& x : out) x = *last += 1;
  }
};
floats remapped(const floats& old, std::int64_t columns, const matrix_remapping& to, std::int64_t first,
                std::int64_t rows) {
  const matrix_values m{static_cast<std::int64_t>(old.size()) / columns, columns, std::as_bytes(std::span(old))};
  floats out(static_cast<std::size_t>(rows * (to.known_columns(m) + to.column_oov)), -1.0f);
  remap_matrix(m, to, first, rows, out);
  return out;
}
template <class Call>
std::string refusal(status kind, Call&& call) {
  try {
    call();
  } catch (const error& e) {
    CHECK(e.kind() == kind);
    return e.what();
  }
  FAIL("nothing was refused");
  return {};
}
bool says(const std::string& message, std::string_view part) {
  INFO(message);
  return message.find(part) != std::string::npos;
}

// Rows venus, jupiter, mercury from mercury, venus, mars; columns good, best, fantastic from good, better, best.
const ids planets{1, -1, 0}, praise{0, 2, -1};
const floats w{0, 1, 2, 10, 11, 12, 20, 21, 22};  // w(i, j) = 10 i + j
}  // namespace

TEST_CASE("remap_matrix: the worked case, whole") {
  const counting fill;
  CHECK(remapped(w, 3,
                 {.rows = &planets, .columns = &praise, .row_oov = 2, .column_oov = 1, .backup_initializer = fill}, 0,
                 5) == floats{10, 12, 1,  12,  //
                              2,  3,  4,  13,  //
                              0,  2,  5,  14,  //
                              6,  7,  8,  15,  //
                              9,  10, 11, 16});
  CHECK(*fill.asked == std::vector<extents>{{5, 1}, {2, 3}, {5, 1}});
}

TEST_CASE("remap_matrix: the worked case in 2 and 3 parts") {
  // The initializer starts again in each part, as it does where parts live in different processes.
  const auto part = [&](std::int64_t first, std::int64_t rows, std::vector<extents> asked) {
    const counting fill;
    auto out = remapped(
        w, 3, {.rows = &planets, .columns = &praise, .row_oov = 2, .column_oov = 1, .backup_initializer = fill}, first,
        rows);
    CHECK(*fill.asked == asked);
    return out;
  };
  CHECK(part(0, 3, {{5, 1}, {3, 1}}) == floats{10, 12, 1, 6, 2, 3, 4, 7, 0, 2, 5, 8});
  CHECK(part(3, 2, {{2, 3}, {2, 1}}) == floats{1, 2, 3, 7, 4, 5, 6, 8});

  CHECK(part(0, 2, {{4, 1}, {2, 1}}) == floats{10, 12, 1, 5, 2, 3, 4, 6});
  CHECK(part(2, 2, {{1, 1}, {1, 3}, {2, 1}}) == floats{0, 2, 1, 5, 2, 3, 4, 6});
  CHECK(part(4, 1, {{1, 4}}) == floats{1, 2, 3, 4});  // behind the first OOV row: one block
}

TEST_CASE("remap_matrix: rows alone, columns alone, nothing to fill") {
  CHECK(remapped(w, 3, {.rows = &planets, .row_oov = 1}, 0, 4) == floats{10, 11, 12, 0, 0, 0, 0, 1, 2, 0, 0, 0});
  CHECK(remapped(w, 3, {.columns = &praise}, 1, 2) == floats{10, 12, 0, 20, 22, 0});
  CHECK(remapped({5, 6, 7}, 1, {.rows = &planets}, 0, 3) == floats{6, 0, 5});  // a bias is a column
  const counting fill;
  const ids all{2, 1, 0};
  CHECK(remapped({5, 6, 7}, 1, {.rows = &all, .backup_initializer = fill}, 0, 3) == floats{7, 6, 5});
  CHECK(fill.asked->empty());
}

TEST_CASE("remap_matrix: what does not fit is refused before anything is written") {
  const ids past{0, 3};
  floats out(6, -1.0f);
  const matrix_values m{3, 3, std::as_bytes(std::span(w))};
  CHECK(says(refusal(status::invalid_argument, [&] { remap_matrix(m, {.rows = &past}, 0, 2, out); }),
             "line 4, but the matrix had 3 rows; set old_vocab_size"));
  CHECK(says(refusal(status::invalid_argument, [&] { remap_matrix(m, {.rows = &planets, .row_oov = 1}, 3, 2, out); }),
             "rows 3 to 5 are asked for, but there are 3 and 1 OOV rows"));
  refusal(status::invalid_argument, [&] { remap_matrix(m, {.rows = &planets}, 0, 3, out); });
  CHECK(out == floats(6, -1.0f));
}

TEST_CASE("match_vocabularies: the old line of each token") {
  const faulty_files fs;
  publish(fs, "old", "mercury\r\nvenus\r\nmars\r\n");
  publish(fs, "new", "venus\njupiter\nmercury\nmars\nearth\n");
  const vocab_info info{.new_vocab = "new", .new_vocab_size = 3, .num_oov_buckets = 2, .old_vocab = "old"};
  CHECK(match_vocabularies(info, fs) == ids{1, -1, 0});
  auto other = info;
  other.new_vocab_size = 5;
  CHECK(match_vocabularies(other, fs) == ids{1, -1, 0, 2, -1});
  other.old_vocab_size = 1;  // hides venus and mars
  CHECK(match_vocabularies(other, fs) == ids{-1, -1, 0, -1, -1});
}

TEST_CASE("match_vocabularies: refusals") {
  const faulty_files fs;
  publish(fs, "old", "a\nb\nc\nb\n");
  publish(fs, "new", "c\nx\nx\nc\n");
  const vocab_info info{.new_vocab = "new", .new_vocab_size = 3, .old_vocab = "old", .old_vocab_size = 3};
  CHECK(match_vocabularies(info, fs) == ids{2, -1, -1});  // a new token may stand twice, if it was not there before
  const auto refused = [&](status kind, auto change) {
    auto other = info;
    change(other);
    return refusal(kind, [&] { match_vocabularies(other, fs); });
  };
  using v = vocab_info;
  CHECK(says(refused(status::failed_precondition, [](v& i) { i.old_vocab_size = -1; }), "\"b\" in lines 2 and 4"));
  CHECK(says(refused(status::unimplemented, [](v& i) { i.new_vocab_size = 4; }), "\"c\" twice (again in line 4)"));
  CHECK(
      says(refused(status::invalid_argument,
                   [](v& i) { i.new_vocab_size = 5, i.new_vocab = "old", i.old_vocab = "new", i.old_vocab_size = 2; }),
           "has 4 lines, but new_vocab_size is 5"));
  CHECK(says(
      refused(status::invalid_argument, [](v& i) { i.old_vocab_size = 3, i.old_vocab = "new", i.new_vocab_size = 0; }),
      "new_vocab_size is 0"));
  CHECK(says(refused(status::failed_precondition, [](v& i) { i.old_vocab_size = 5; }), "in lines 2 and 4"));
  CHECK(says(refused(status::invalid_argument, [](v& i) { i.new_vocab = ""; }), "new_vocab is empty"));
  CHECK(says(refused(status::invalid_argument, [](v& i) { i.old_vocab = ""; }), "old_vocab is empty"));
  CHECK(says(refused(status::invalid_argument, [](v& i) { i.axis = 2; }), "axis is 2"));
  CHECK(says(refused(status::invalid_argument, [](v& i) { i.num_oov_buckets = -1; }), "num_oov_buckets is -1"));
  CHECK(says(refused(status::invalid_argument, [](v& i) { i.old_vocab_size = 0; }), "old_vocab_size is 0"));
  CHECK(says(refused(status::not_found, [](v& i) { i.old_vocab = "gone"; }), "\"gone\""));
  publish(fs, "short", "a\nb");
  CHECK(says(refused(status::invalid_argument, [](v& i) { i.old_vocab = "short"; }),
             "\"short\" has 2 lines, but old_vocab_size is 3"));
  CHECK(says(refusal(status::resource_exhausted, [&] { match_vocabularies(info, fs, {.file_bytes = 7}); }),
             "file_bytes"));
}
