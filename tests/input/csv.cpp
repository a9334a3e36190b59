#include <gradus/input/csv.hpp>
#include <gradus/testing/temp_dir.hpp>

#include "reader_files.hpp"

using namespace reader_tests;

namespace {

const csv_column word{"word", uint8, {any_extent}};
csv_column number_column(dtype type, csv_default fallback = {}) { return {"x", type, {}, std::move(fallback)}; }

// The stream of one file "f"; errors without the place, and without the remedy behind TensorFlow's text.
strings csv_stream(const std::string& content, std::vector<csv_column> columns, const csv_options& how = {}) {
  auto d = csv("f", std::move(columns), how, disk_with({{"f", content}}));
  auto out = stream_of(d);
  for (auto& line : out)
    if (const auto at = line.find("): "); line.starts_with("error: csv \"f\", record") && at != line.npos)
      line = "error: " + line.substr(at + 3, line.find("; ", at) - at - 3);
  return out;
}
// The two text fields of each record.
strings pairs(const std::string& content, const csv_options& how = {}) {
  return csv_stream(content, {word, {"other", uint8, {any_extent}}}, how);
}

}  // namespace

TEST_CASE("records end in \\n, \\r, \\r\\n or with the file; an empty line is one empty field") {
  for (const char* content : {"a,b\nc,d\n", "a,b\rc,d\r", "a,b\r\nc,d\r\n", "a,b\nc,d", "a,b\r\nc,d", "a,b\rc,d"})
    CHECK(pairs(content) == strings{"'a' 'b'", "'c' 'd'"});
  CHECK(csv_stream("a\n\nb\n", {{"w", uint8, {any_extent}, ""}}) == strings{"'a'", "''", "'b'"});
  CHECK(csv_stream("a\r\r\n\n", {{"w", uint8, {any_extent}, "-"}}) == strings{"'a'", "'-'", "'-'"});
  CHECK(csv_stream("", {word}).empty());
  CHECK(csv_stream("\n", {word}) == strings{"error: Field 0 is required but missing in record!"});
  CHECK(pairs("a,b\n\nc,d\n") == strings{"'a' 'b'", "error: Field 0 is required but missing in record!", "'c' 'd'"});
}

TEST_CASE("quotes") {
  CHECK(pairs("\"a,\n\"\"b\"\"\",\"\"\"\"\n\" x \", y\n") == strings{"'a,\n\"b\"' '\"'", "' x ' ' y'"});
  CHECK(pairs("\"a\",\"b\"\r\n\"c\",\"d\"") == strings{"'a' 'b'", "'c' 'd'"});
  CHECK(pairs("\"a\"x\",b\nc,d\n") ==
        strings{"error: Quote inside a string has to be escaped by another quote", "'c' 'd'"});
  CHECK(pairs("\"a\" ,b\"\nc,d\n") ==
        strings{"error: Quote inside a string has to be escaped by another quote", "'c' 'd'"});
  CHECK(pairs("a\"b,c\nd,e\n") == strings{"error: Unquoted fields cannot have quotes inside", "'d' 'e'"});
  CHECK(pairs(" \"a\",c\nd,e\n") == strings{"error: Unquoted fields cannot have quotes inside", "'d' 'e'"});
  CHECK(pairs("a,b\n\"c,d\ne") ==
        strings{"'a' 'b'", "error: Reached end of file without closing quoted field in record"});
  CHECK(pairs("\"a,b\"\"\nc,\"\n", {.use_quote_delim = false}) == strings{"'\"a' 'b\"\"'", "'c' '\"'"});
  CHECK(csv_stream("\"12\"\n\"1\"\"2\"\n", {number_column(int32)}) ==
        strings{"12", "error: Field 0 in record is not a valid int32: 1\"2"});
}

TEST_CASE("numbers, and what is none") {
  CHECK(csv_stream("1\n-2147483648\n 3 \n", {number_column(int32)}) == strings{"1", "-2147483648", "3"});
  CHECK(csv_stream("9223372036854775807\n", {number_column(int64)}) == strings{"9223372036854775807"});
  CHECK(csv_stream("0.5\n1e3\ninf\n", {number_column(float32)}) == strings{"0.5", "1000", "inf"});
  CHECK(csv_stream("0.1\n", {number_column(float64)}) == strings{"0.1"});
  CHECK(csv_stream("x\n5\n", {number_column(int32)}) ==
        strings{"error: Field 0 in record is not a valid int32: x", "5"});
  CHECK(csv_stream("1.5\n12x\n", {number_column(int64)}) ==
        strings{"error: Field 0 in record is not a valid int64: 1.5",
                "error: Field 0 in record is not a valid int64: 12x"});
  CHECK(csv_stream("2147483648\n", {number_column(int32)}) ==
        strings{"error: Field 0 in record is not a valid int32: 2147483648"});
  CHECK(csv_stream("1,5\n", {number_column(float32), {"y", float64}}, {.field_delim = ';'}) ==
        strings{"error: Field 0 in record is not a valid float: 1,5"});
  CHECK(csv_stream("1,a\n", {number_column(float32), {"y", float64}}) ==
        strings{"error: Field 1 in record is not a valid double: a"});
}

TEST_CASE("too many fields, too few, defaults") {
  const std::vector<csv_column> three = {{"x", int32, {2}}, {"y", float32}};
  CHECK(csv_stream("1,2,3\n1,2\n1\n1,2,3,4,5\n4,5,6\n", three) ==
        strings{"[1,2] 3", "error: Expect 3 fields but have 2 in record", "error: Expect 3 fields but have 1 in record",
                "error: Expect 3 fields but have more in record", "[4,5] 6"});
  CHECK(csv_stream("1,2,3,\n", three) == strings{"error: Expect 3 fields but have more in record"});
  CHECK(csv_stream("1,2,\n", three) == strings{"error: Field 2 is required but missing in record!"});
  CHECK(csv_stream("1,,", three) == strings{"error: Field 1 is required but missing in record!"});
  const std::vector<csv_column> given = {
      {"x", int32, {2}, 7}, {"y", float64, {}, 0.25}, {"w", uint8, {any_extent}, "-"}};
  CHECK(csv_stream(",1,,\n2,,3,b\n,,,\nNA,NA,NA,NA\n", given, {.na_value = "NA"}) ==
        strings{"[7,1] 0.25 '-'", "[2,7] 3 'b'", "[7,7] 0.25 '-'", "[7,7] 0.25 '-'"});
  // Also one that looks like a number.
  CHECK(csv_stream("1\n-1\n-1.0\n", {number_column(float32, 9)}, {.na_value = "-1"}) == strings{"1", "9", "-1"});
  CHECK(csv_stream("-1\n", {number_column(int32)}, {.na_value = "-1"}) ==
        strings{"error: Field 0 is required but missing in record!"});
}

TEST_CASE("header, comment, delimiter, selected fields") {
  const auto d = disk_with({{"a", "\"h\n1\",h2\n1,2\n"}, {"b", "h,h\n"}, {"c", "# c, \"d\n# e\nx,y\n3,4\n#5,6\n"}});
  auto both = csv({"a", "b", "c"}, {{"x", int32, {2}}}, {.header = true, .comment = '#'}, d);
  CHECK(stream_of(both) == strings{"[1,2]", "[3,4]"});
  both.rewind();
  CHECK(stream_of(both) == strings{"[1,2]", "[3,4]"});
  CHECK(pairs("a\tb,c\n", {.field_delim = '\t'}) == strings{"'a' 'b,c'"});
  CHECK(csv_stream("1.2\n", {number_column(int32), {"y", int32}}, {.field_delim = '.'}) == strings{"1 2"});
  CHECK(csv_stream("1e2\n", {number_column(float32), {"y", int32}}, {.field_delim = 'e'}) == strings{"1 2"});

  const std::string five = "0,1,2,3,4\n5,6,7,8,x\n1,2,3\n1,2,3,4\n";
  CHECK(csv_stream(five, {{"x", int32, {2}}, {"y", int32}}, {.select_cols = {0, 1, 3}}) ==
        strings{"[0,1] 3", "[5,6] 8", "error: Expect 3 fields but have 2 in record", "[1,2] 4"});
  CHECK(csv_stream("0,1,2,3,4\n", {{"x", int32, {3}}}, {.select_cols = {1, 2, 4}}) == strings{"[1,2,4]"});
  CHECK(csv_stream("a\"b,1\n", {number_column(int32)}, {.select_cols = {1}}) ==
        strings{"error: Unquoted fields cannot have quotes inside"});
}

TEST_CASE("files as they are found") {
  // UCI's optdigits.tra, with a line in front that some copies have; iris.data; MovieLens' u.data and u.user.
  const std::string digits =
      "# 8x8 counts, class\n"
      "0,1,6,15,12,1,0,0,0,7,16,6,6,10,0,0,0,8,16,2,0,11,2,0,0,5,16,3,0,5,7,0,0,7,13,3,0,8,7,0,0,4,12,0,1,13,5,0,0,0,"
      "14,"
      "9,15,9,0,0,0,0,6,14,7,1,0,0,0\n"
      "0,0,10,16,6,0,0,0,0,7,16,8,16,5,0,0,0,11,16,0,6,14,3,0,0,12,12,0,0,11,11,0,0,12,12,0,0,8,12,0,0,7,15,1,0,13,11,"
      "0,"
      "0,0,16,8,10,15,3,0,0,0,10,16,15,3,0,0,0\n";
  const auto d = disk_with({{"optdigits.tra", digits},
                            {"iris.data", "5.1,3.5,1.4,0.2,Iris-setosa\r\n7.0,3.2,4.7,1.4,Iris-versicolor\r\n\r\n"},
                            {"u.data", "196\t242\t3\t881250949\n186\t302\t3\t891717742\n"},
                            {"u.item", "1|Toy Story (1995)|01-Jan-1995||0\n2|Mis\xe9rables|||1\n"}});
  auto pictures =
      csv("optdigits.tra", {{"pixels", float32, {8, 8}}, {"label", int32}}, {.comment = '#'}, d).batch(32, false);
  datum b;
  REQUIRE(pictures.next(b));
  CHECK(b["pixels"].dims == extents{2, 8, 8});
  float total = 0;
  for (const float x : b.values<float>("pixels")) total += x;
  CHECK(total == 303.0F + 367.0F);  // python3's sums of the two lines
  CHECK(shown(b["label"]) == "[0,0]");
  auto iris = csv("iris.data", {{"x", float32, {4}}, {"species", uint8, {any_extent}}}, {.ignore_errors = true}, d);
  CHECK(stream_of(iris) == strings{"[5.1,3.5,1.4,0.2] 'Iris-setosa'", "[7,3.2,4.7,1.4] 'Iris-versicolor'"});
  CHECK(iris.skipped() == 1);  // the empty line
  auto ratings = csv("u.data", {{"ids", int64, {2}}, {"rating", float32}, {"time", int64}}, {.field_delim = '\t'}, d);
  CHECK(stream_of(ratings) == strings{"[196,242] 3 881250949", "[186,302] 3 891717742"});
  auto items = csv("u.item", {{"id", int32}, word, {"released", uint8, {any_extent}, "?"}, {"unknown", int32}},
                   {.field_delim = '|', .select_cols = {0, 1, 2, 4}}, d);
  CHECK(stream_of(items) == strings{"1 'Toy Story (1995)' '01-Jan-1995' 0", "2 'Mis\xe9rables' '?' 1"});
}

TEST_CASE("the worked example of docs/formats/csv.md") {
  CHECK(csv_stream("id,word,x,y\n7,\"say \"\"hi\"\",\ntwice\",0.5,\n",
                   {{"id", int64}, {"word", uint8, {any_extent}}, {"xy", float32, {2}, 0}},
                   {.header = true}) == strings{"7 'say \"hi\",\ntwice' [0.5,0]"});
}

TEST_CASE("an error names file, record, line and byte") {
  const auto d = disk_with({{"f.csv", "h\n\"a\nb\",1\nc,x\nd,4\n"}});
  auto rows = csv("f.csv", {word, {"y", int32}}, {.header = true}, d);
  CHECK(stream_of(rows) ==
        strings{
            "'a\nb' 1",
            "error: csv \"f.csv\", record 2 (line 4, byte 10): Field 1 in record is not a valid int32: x; it is of the "
            "column \"y\"",
            "'d' 4"});
  auto forgiving = csv("f.csv", {word, {"y", int32}}, {.header = true, .ignore_errors = true}, d);
  CHECK(stream_of(forgiving) == strings{"'a\nb' 1", "'d' 4"});
  CHECK(forgiving.skipped() == 1);
}

TEST_CASE("straight into batches; a bad record is raised by one call") {
  std::string content;
  for (int i = 0; i < 10; ++i) content += text(i, ',', i + 1, ',', i % 3, i == 4 ? "x\n" : "\r\n");
  const auto d = disk_with({{"f", content}});
  const std::vector<csv_column> columns = {{"pixels", float32, {2}}, {"label", int32}};
  auto batches = csv("f", columns, {.ignore_errors = true}, d).batch(6);
  CHECK(batches.element_spec() == components{{"pixels", float32, {2}}, {"label", int32, {}}});
  datum b;
  REQUIRE(batches.next(b));
  CHECK(shown(b) == "[0,1,1,2,2,3,3,4,5,6,6,7] [0,1,2,0,2,0]");
  REQUIRE(batches.next(b));
  CHECK(shown(b) == "[7,8,8,9,9,10] [1,2,0]");
  CHECK_FALSE(batches.next(b));

  auto strict = csv("f", columns, {}, d);
  CHECK(strict.pull({}, 0, 4) == 4);
  CHECK(message_of(status::data_loss, [&] { strict.pull({}, 0, 4); }).find("record 5 (line 5, byte 28)") !=
        std::string::npos);
  CHECK(strict.pull({}, 0, 100) == 5);
  auto words = csv("f", {word, {"y", int32, {2}}}, {}, d);
  CHECK(message_of(status::invalid_argument, [&] { words.next_batch({}, 1); }).find("differ in size") !=
        std::string::npos);
}

TEST_CASE("continued at any record in another process") {
  const std::string first = "h,h\n1,a\n#\n2,\"b\nb\"\n3,\"\"\"\"\r\n", second = "h,\"h\n\"\r4,d\rx,e\r5,f\r",
                    third = "\n6,g";
  const testing::temp_dir dir;
  publish(posix{}, dir / "a", first);
  publish(posix{}, dir / "b", gzipped_text(second));
  publish(posix{}, dir / "c", third);
  const std::vector<csv_column> columns = {{"x", int64}, word};
  const csv_options how = {.header = true, .comment = '#', .ignore_errors = true};
  resumes([&] { return any_dataset(csv({dir / "a", dir / "b", dir / "c"}, columns, how)); });
  const auto d = disk_with({{"a", gzipped_text(first)}, {"b", second}, {"c", third}});
  resumes([&] { return any_dataset(csv({"a", "b", "c"}, columns, how, d)); });
  resumes([&] { return any_dataset(csv({"a", "b", "c"}, columns, how, d).shuffle(3, 5).repeat(2)); });
  auto all = csv({"a", "b", "c"}, columns, how, d);
  CHECK(stream_of(all) == strings{"1 'a'", "2 'b\nb'", "3 '\"'", "4 'd'", "5 'f'", "6 'g'"});
}

TEST_CASE("records across the pieces that are read") {
  // A field of each kind at every place of a piece of 256 KiB.
  std::string content, expected;
  int records = 0;
  while (content.size() < (1 << 18) + 3000) {
    content += text(records, ",\"q", records, "\"\"\n\",", 0.5 * records, records % 7 == 0 ? "\r\n" : "\n");
    ++records;
  }
  for (int shift = 1; shift < 24; ++shift) {
    const auto d = disk_with({{"f", std::string(static_cast<std::size_t>(shift), '#') + "\n" + content}});
    auto rows = csv("f", {{"i", int32}, word, {"x", float64}}, {.comment = '#'}, d);
    datum e;
    int n = 0, wrong = 0;
    for (; rows.next(e); ++n)
      wrong += e.value<std::int32_t>("i") != n || e.value<double>("x") != 0.5 * n ||
               shown(e["word"]) != text("'q", n, "\"\n'");
    REQUIRE(wrong == 0);
    REQUIRE(n == records);
  }
}

TEST_CASE("what cannot be read is refused") {
  const auto refusal = [](std::vector<csv_column> columns, const csv_options& how = {}) {
    return message_of(status::invalid_argument, [&] { csv("f", columns, how, disk()); });
  };
  CHECK(refusal({}) == "csv: expected at least one column");
  CHECK(refusal({{"x", uint8}}) ==
        "csv: the column \"x\" is uint8 []; expected float32, float64, int32 or int64 with extents above 0, or uint8 "
        "[any_extent] for text");
  CHECK(refusal({{"x", float32, {any_extent}}}).find("is float32") != std::string::npos);
  CHECK(refusal({{"x", float32, {0}}}).find("above 0") != std::string::npos);
  CHECK(refusal({{"x"}, {"x"}}) == "csv: two columns are called \"x\"; rename one of them");
  CHECK(refusal({{"x", int32, {}, "1.5"}}) == "csv: the default \"1.5\" of \"x\" is no int32");
  CHECK(refusal({{"x"}}, {.field_delim = '"'}) == "csv: a quote, \\n or \\r cannot be the delimiter");
  CHECK(refusal({{"x", float32, {2}}}, {.select_cols = {1, 1}}) ==
        "csv: select_cols: expected increasing numbers of fields, from 0 on");
  CHECK(refusal({{"x", float32, {2}}}, {.select_cols = {1}}) ==
        "csv: select_cols selects 1 fields, the columns take 2; expected the same number");
}

TEST_CASE("an open quote does not take the memory") {
  const auto d = disk_with({{"f", "1,\"" + std::string(5000, 'x') + "\n2,b\n3,c\n"}});
  auto rows = csv("f", {{"x", int32}, word}, {.limits = {.record_bytes = 1000}}, d);
  const auto all = stream_of(rows);
  REQUIRE(all.size() == 3);
  CHECK(all[0].find("error: csv \"f\", record 1 (line 1, byte 0): expected at most 1000 bytes") == 0);
  CHECK(all[2] == "3 'c'");
}
