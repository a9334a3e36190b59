#include <gradus/input/criteo.hpp>
#include <gradus/testing/temp_dir.hpp>

#include "reader_files.hpp"

using namespace reader_tests;

namespace {

// The shape of the Kaggle file's records: some integers and categories missing, also the last ones; one negative.
const std::string first_record =
    "0\t1\t1\t5\t0\t1382\t4\t15\t2\t181\t1\t2\t\t2\t68fd1e64\t80e26c9b\tfb936136\t7b4723c4\t25c83c98\t7e0ccccf\tde7995b"
    "8"
    "\t1f89b562\ta73ee510\ta8cd5504\tb2cb9c98\t37c9c164\t2824a5f6\t1adce6ef\t8ba8b39a\t891b62e7\te5ba7672\tf54016b9"
    "\t21ddcdc9\tb1252a9d\t07b5194c\t\t3a171ecb\tc5c50484\te8b83407\t9727dd16";
const std::string second_record =
    "1\t\t-1\t\t\t\t\t\t\t\t\t\t\t12\t00000000\tffffffff\tFB936136\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t";

strings criteo_stream(const std::string& content, const criteo_options& how = {}) {
  auto d = criteo("f", how, disk_with({{"f", content}}));
  auto out = stream_of(d);
  for (auto& line : out)
    if (const auto at = line.find("): "); line.starts_with("error: criteo \"f\", record") && at != line.npos)
      line = "error: " + line.substr(at + 3);
  return out;
}

}  // namespace

TEST_CASE("records with missing fields, also at the end") {
  const auto d = disk_with({{"f", first_record + "\n" + second_record + "\r\n"}});
  auto rows = criteo("f", {}, d);
  CHECK(rows.element_spec() ==
        components{{"label", int32, {}}, {"integers", float32, {13}}, {"categories", int64, {26}}});
  const auto all = stream_of(rows);
  REQUIRE(all.size() == 2);
  // Categories by python3: int("68fd1e64", 16), ...
  CHECK(all[0] ==
        "0 [1,1,5,0,1382,4,15,2,181,1,2,0,2] "
        "[1761418852,2162322587,4220739894,2068259780,633879704,2114768079,3732510136,"
        "529118562,2805916944,2832028932,2999688344,935969124,673490422,450684655,2343089050,2300273383,3854202482,"
        "4114618041,568184265,2972002973,129309004,-1,974593739,3318023300,3904386055,2535972118]");
  CHECK(all[1] ==
        "1 [0,-1,0,0,0,0,0,0,0,0,0,0,12] "
        "[0,4294967295,4220739894,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,"
        "-1,-1,-1,-1]");
}

TEST_CASE("without labels, logarithms, buckets, another value for missing") {
  const std::string content = second_record.substr(2) + "\n";
  const auto all =
      criteo_stream(content, {.labels = false, .missing = -7, .log_transform = true, .hash_buckets = 1000});
  REQUIRE(all.size() == 1);
  CHECK(all[0].find("[-7,0,-7,-7,-7,-7,-7,-7,-7,-7,-7,-7,2.56494") == 0);  // ln 13 = 2.5649493575
  CHECK(all[0].find("[0,295,894,-1,") != std::string::npos);
  auto batches = criteo("f", {}, disk_with({{"f", first_record + "\n" + second_record}})).batch(2);
  datum b;
  REQUIRE(batches.next(b));
  CHECK(b["categories"].dims == extents{2, 26});
  CHECK(shown(b["label"]) == "[0,1]");
}

TEST_CASE("what is wrong with a record, and the next one") {
  const auto problem = [](std::string line, const criteo_options& how = {}) {
    const auto all = criteo_stream(line + "\n" + first_record.substr(how.labels ? 0 : 2) + "\n", how);
    REQUIRE(all.size() == 2);
    CHECK(all[1].find("error") == std::string::npos);
    return all[0];
  };
  const auto cut = [](int fields) {
    std::size_t at = 0;
    for (int i = 0; i < fields; ++i) at = first_record.find('\t', at) + 1;
    return first_record.substr(0, at - 1);
  };
  CHECK(problem("") == "error: expected a label of 0 or 1, found \"\"");
  CHECK(problem("2" + first_record.substr(1)) == "error: expected a label of 0 or 1, found \"2\"");
  CHECK(problem("x" + first_record.substr(1)) == "error: expected a label of 0 or 1, found \"x\"");
  CHECK(problem(cut(1)) == "error: expected 40 fields between tabs, found 1");
  CHECK(problem(cut(14)) == "error: expected 40 fields between tabs, found 14");
  CHECK(problem(cut(39)) == "error: expected 40 fields between tabs, found 39");
  CHECK(problem(first_record + "\t") == "error: expected 40 fields between tabs, found more");
  CHECK(problem(first_record, {.labels = false}).find("expected 8 hexadecimal digits, found \"2\"") !=
        std::string::npos);
  CHECK(problem("0\t1.5" + first_record.substr(3)) == "error: field 1: expected an integer, found \"1.5\"");
  auto bad = first_record;
  bad.back() = 'g';
  CHECK(problem(bad) == "error: field 39: expected 8 hexadecimal digits, found \"9727dd1g\"");
  CHECK(problem(first_record + "0") == "error: field 39: expected 8 hexadecimal digits, found \"9727dd160\"");
  bad.pop_back();
  CHECK(problem(bad) == "error: field 39: expected 8 hexadecimal digits, found \"9727dd1\"");

  auto d = criteo("f", {}, disk_with({{"f", first_record + "\nx\n"}}));
  CHECK(stream_of(d)[1] == text("error: criteo \"f\", record 2 (line 2, byte ", first_record.size() + 1,
                                "): expected a label of 0 or 1, found \"x\""));
  auto forgiving = criteo("f", {.ignore_errors = true}, disk_with({{"f", "x\n" + first_record + "\nx\n"}}));
  CHECK(stream_of(forgiving).size() == 1);
  CHECK(forgiving.skipped() == 2);
  CHECK(message_of(status::invalid_argument, [] { criteo("f", {.hash_buckets = -1}); }) ==
        "criteo: expected a number of buckets from 0 on, found -1");
}

TEST_CASE("continued at any record in another process") {
  const testing::temp_dir dir;
  publish(posix{}, dir / "a", first_record + "\n" + second_record + "\nbad\n" + first_record + "\n");
  publish(posix{}, dir / "b", gzipped_text(second_record + "\n" + first_record));
  resumes([&] { return any_dataset(criteo({dir / "a", dir / "b"}, {.ignore_errors = true})); });
}
