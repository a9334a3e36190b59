#include <gradus/input/libsvm.hpp>
#include <gradus/input/padded_batch.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <algorithm>
#include <charconv>

#include "reader_files.hpp"

using namespace reader_tests;

namespace {

strings libsvm_stream(const std::string& content, const libsvm_options& how) {
  auto d = libsvm("f", how, disk_with({{"f", content}}));
  auto out = stream_of(d);
  for (auto& line : out)
    if (const auto at = line.find("): "); line.starts_with("error: libsvm \"f\", record") && at != line.npos)
      line = "error: " + line.substr(at + 3);
  return out;
}

}  // namespace

TEST_CASE("dense: all features, indices from 1 or from 0") {
  const std::string content = "-1 1:1 3:0.5\n+1\t2:-2.5e1  4:7 \r\n# nothing\n\n0 # no features\n1.5 4:1# 5:1\n1";
  CHECK(libsvm_stream(content, {.features = 4}) ==
        strings{"[1,0,0.5,0] -1", "[0,-25,0,7] 1", "[0,0,0,0] 0", "[0,0,0,1] 1.5", "[0,0,0,0] 1"});
  CHECK(libsvm_stream("1 0:5 2:6\n", {.features = 3, .zero_based = true}) == strings{"[5,0,6] 1"});
  CHECK(libsvm_stream("-3 1:2\n", {.features = 1, .label_type = int32}) == strings{"[2] -3"});
  CHECK(libsvm_stream("+4 1:2\n", {.features = 1, .label_type = int64}) == strings{"[2] 4"});
  CHECK(libsvm_stream("0.1 1:2\n", {.features = 1, .label_type = float64}) == strings{"[2] 0.1"});
}

TEST_CASE("as a8a and agaricus have it") {
  // The first lines of LIBSVM's a8a and of XGBoost's agaricus.txt.train, cut.
  const std::string content =
      "-1 3:1 11:1 14:1 19:1 39:1 42:1 55:1 64:1 67:1 73:1 75:1 76:1 80:1 83:1 \n"
      "-1 5:1 6:1 17:1 27:1 35:1 40:1 57:1 63:1 69:1 73:1 74:1 76:1 81:1 103:1 \n"
      "1 3:1 10:1 11:1 21:1 30:1 34:1 36:1 40:1 41:1 53:1 58:1 65:1 69:1 77:1\n";
  auto rows = libsvm("f", {.features = 123, .ragged = true}, disk_with({{"f", content}}));
  datum e;
  REQUIRE(rows.next(e));
  CHECK(shown(e["indices"]) == "[2,10,13,18,38,41,54,63,66,72,74,75,79,82]");
  CHECK(shown(e["values"]) == "[1,1,1,1,1,1,1,1,1,1,1,1,1,1]");
  auto dense = libsvm("f", {.features = 123}, disk_with({{"f", content}})).batch(8);
  REQUIRE(dense.next(e));
  CHECK(e["features"].dims == extents{3, 123});
  CHECK(shown(e["label"]) == "[-1,-1,1]");
  int ones = 0;
  for (const float x : e.values<float>("features")) ones += x == 1.0F;
  CHECK(ones == 14 + 14 + 14);
}

TEST_CASE("ragged, labels in a list, queries") {
  CHECK(libsvm_stream("1 1:0.5 9:2\n0\n", {.ragged = true}) == strings{"[0,8] [0.5,2] 1", "[] [] 0"});
  CHECK(libsvm_stream("1,3 2:1\n2:5\n7\n", {.ragged = true, .label_type = int64, .multilabel = true}) ==
        strings{"[1] [1] [1,3]", "[1] [5] []", "[] [] [7]"});
  const std::string ranked = "2 qid:10 1:1\n1 qid:10\n0 1:1\n1 qid:x 1:1\n";
  CHECK(libsvm_stream(ranked, {.features = 1, .qid = true}) ==
        strings{"[1] 2 10", "[0] 1 10", "error: expected qid:<number> behind the label, found none",
                "error: expected qid:<number>, found \"qid:x\""});
  CHECK(libsvm_stream("2 qid:10 1:1\n", {.features = 1}) == strings{"[1] 2"});
  auto batches = libsvm("f", {.ragged = true}, disk_with({{"f", "1 1:0.5 9:2\n0\n"}})).padded_batch(2);
  datum b;
  REQUIRE(batches.next(b));
  CHECK(shown(b) == "[0,8,0,0] [0.5,2,0,0] [1,0]");
}

TEST_CASE("features of every length, with blanks of every kind between them and behind the last") {
  random_stream r{9, 0};
  for (int round = 0; round < 4000; ++round) {
    std::string line = "1 ";
    std::vector<std::int64_t> indices;
    std::vector<float> values;
    std::int64_t index = 0;
    for (int f = static_cast<int>(r.below(5)); f >= 0; --f) {
      index += static_cast<std::int64_t>(1 + r.below(r.below(2) == 0 ? 9 : 9999999));
      std::string value = r.below(4) == 0 ? "-" : "";
      for (int d = static_cast<int>(r.below(r.below(3) == 0 ? 14 : 6)); d >= 0; --d)
        value += static_cast<char>('0' + r.below(10));
      if (r.below(2) == 0) value.insert(value.size() - r.below(static_cast<std::uint32_t>(value.size())), ".");
      if (r.below(8) == 0) value += "e-3";
      const char* const begin = value.data();
      float x = 0;
      if (std::from_chars(begin, begin + value.size(), x).ptr != begin + value.size()) value = "7", x = 7;
      line += text(index, ':', value);
      indices.push_back(index - 1), values.push_back(x);
      const char* const blanks[] = {" ", "  ", "\t", " \t"};
      if (f != 0 || r.below(2) == 0) line += blanks[r.below(4)];
    }
    INFO(line);
    for (const char* behind : {"", "\n", "\r\n", " # 9:9 more\n"}) {
      auto rows = libsvm("f", {.ragged = true}, disk_with({{"f", line + behind}}));
      datum e;
      REQUIRE(rows.next(e));
      const auto i = e.values<std::int64_t>("indices");
      const auto v = e.values<float>("values");
      CHECK(std::equal(i.begin(), i.end(), indices.begin(), indices.end()));
      CHECK(std::equal(v.begin(), v.end(), values.begin(), values.end()));
      CHECK_FALSE(rows.next(e));
    }
  }
}

TEST_CASE("what is wrong with a record, and the next one") {
  const auto problem = [](const std::string& line, const libsvm_options& how = {.features = 4}) {
    const auto all = libsvm_stream(line + "\n3 1:3\n", how);
    REQUIRE(all.size() == 2);
    CHECK(all[1] == (how.ragged ? "[0] [3] 3" : "[3,0,0,0] 3"));
    return all[0];
  };
  CHECK(problem("x 1:1") == "error: expected a label of float32, found \"x\"");
  CHECK(problem("1:1") == "error: expected a label of float32, found \"1:1\"");
  CHECK(problem("1.5 1:1", {.features = 4, .label_type = int32}) == "error: expected a label of int32, found \"1.5\"");
  CHECK(problem("1 1:") == "error: expected <index>:<value>, found \"1:\"");
  CHECK(problem("1 1") == "error: expected <index>:<value>, found \"1\"");
  CHECK(problem("1 :1") == "error: expected <index>:<value>, found \":1\"");
  CHECK(problem("1 1:1x") == "error: expected <index>:<value>, found \"1:1x\"");
  CHECK(problem("1 1: 1") == "error: expected <index>:<value>, found \"1:\"");
  CHECK(problem("1 99999999999999999999:1").find("expected <index>:<value>") != std::string::npos);
  CHECK(problem("1 0:1") == "error: expected indices from 1 on, found 0; is it zero_based?");
  CHECK(problem("1 -1:1", {.ragged = true}) == "error: expected indices from 1 on, found -1; is it zero_based?");
  CHECK(problem("1 5:1") == "error: expected an index of at most 4 (4 features), found 5");
  CHECK(problem("1 2:1 2:1") == "error: expected ascending indices, found 2 after 2");
  CHECK(problem("1 3:1 2:1", {.ragged = true}) == "error: expected ascending indices, found 2 after 3");

  auto d = libsvm({"a", "b"}, {.features = 1, .ignore_errors = true}, disk_with({{"a", "1 1:1\n1 2:1\n"}, {"b", "x"}}));
  CHECK(stream_of(d) == strings{"[1] 1"});
  CHECK(d.skipped() == 2);
  auto strict = libsvm("a", {.features = 1}, disk_with({{"a", "1 1:1\n1 2:1\n"}}));
  CHECK(stream_of(strict)[1] ==
        "error: libsvm \"a\", record 2 (line 2, byte 6): expected an index of at most 1 (1 features), found 2");
  CHECK(message_of(status::invalid_argument, [] { libsvm("a", {}); }).find(".features = n") != std::string::npos);
  CHECK(message_of(status::invalid_argument, [] { libsvm("a", {.features = 1, .label_type = uint8}); }) ==
        "libsvm: expected labels of float32, float64, int32 or int64, not uint8");
}

TEST_CASE("continued at any record in another process") {
  const std::string first = "1 1:1 2:2\n# c\n-1\r\n\n2 3:3", second = "3 1:4 \n4 2:5 # x\n5";
  const testing::temp_dir dir;
  publish(posix{}, dir / "a", first);
  publish(posix{}, dir / "b", gzipped_text(second));
  resumes([&] { return any_dataset(libsvm({dir / "a", dir / "b"}, {.features = 3})); });
  resumes([&] { return any_dataset(libsvm({dir / "a", dir / "b"}, {.ragged = true})); });
}
