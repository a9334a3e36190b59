#include <gradus/input/padded_batch.hpp>
#include <gradus/input/text_line.hpp>
#include <gradus/testing/temp_dir.hpp>

#include "reader_files.hpp"

using namespace reader_tests;

TEST_CASE("lines of several files, of either ending") {
  const auto d = disk_with({{"a", "one\ntwo\r\n\nx\ry"}, {"b", ""}, {"c", "\n"}, {"d", "last\r\n"}});
  auto lines = text_line({"a", "b", "c", "d"}, {}, d);
  CHECK(lines.element_spec() == components{{"line", uint8, {any_extent}}});
  const strings all = {"'one'", "'two'", "''", "'x\ry'", "''", "'last'"};
  CHECK(stream_of(lines) == all);
  datum e;
  CHECK_FALSE(lines.next(e));
  lines.rewind();
  CHECK(stream_of(lines) == all);
  CHECK(d.open_handles() == 0);
}

TEST_CASE("a batch of lines is padded with zeros") {
  auto batches = text_line("a", {}, disk_with({{"a", "one\nfour\n"}})).padded_batch(2);
  datum batch;
  REQUIRE(batches.next(batch));
  CHECK(batch[0].dims == extents{2, 4});
  CHECK(std::string(reinterpret_cast<const char*>(batch[0].data), 8) == std::string("one\0four", 8));
}

TEST_CASE("continued at any line in another process, plain and gzipped, on disks that seek or not") {
  const std::string first = "a\nbb\n\nccc\r\ndddd\n", second = "e\nff\nggg";
  const testing::temp_dir dir;
  publish(posix{}, dir / "a", first);
  publish(posix{}, dir / "b", gzipped_text(second));
  resumes([&] { return any_dataset(text_line({dir / "a", dir / "b"})); });
  const auto d = disk_with({{"a", gzipped_text(first)}, {"b", second}});
  resumes([&] { return any_dataset(text_line({"a", "b"}, {}, d)); });
  // Neither where a file lies nor how it is compressed is part of the position; its name is.
  auto from = text_line({dir / "a", dir / "b"});
  auto to = text_line({"a", "b"}, {}, d);
  datum e;
  for (int i = 0; i < 6; ++i) from.next(e);
  std::vector<std::byte> position;
  from.save(position);
  to.load(position);
  CHECK(stream_of(to) == strings{"'ff'", "'ggg'"});
  auto other = text_line({"b", "a"}, {}, d);
  CHECK(message_of(status::data_loss, [&] { other.load(position); }).find("but this input is") != std::string::npos);
  position.back() = std::byte{0xff};
  CHECK(message_of(status::data_loss, [&] { to.load(position); }).find("damaged") != std::string::npos);
}

TEST_CASE("what goes wrong is named, and reading goes on") {
  CHECK(message_of(status::invalid_argument, [] { text_line(std::vector<std::string>{}); }) ==
        "text_line: expected at least one file");
  auto missing = text_line("nothing", {}, disk());
  datum e;
  for (int i = 0; i < 2; ++i)
    CHECK(message_of(status::not_found, [&] { missing.next(e); }).find("cannot open \"nothing\"") == 0);

  const std::string longest(2000, 'x');
  const auto d = disk_with({{"a", "ok\n" + longest + "\nagain\n" + longest}, {"b", "b"}});
  auto lines = text_line({"a", "b"}, {.limits = {.record_bytes = 100}}, d);
  CHECK(stream_of(lines) ==
        strings{"'ok'",
                "error: text_line \"a\", record 2 (line 2, byte 3): expected at most 100 bytes, found more (an open "
                "quote, or no text?); raise reader_limits::record_bytes if the file is to be trusted",
                "'again'",
                "error: text_line \"a\", record 4 (line 4, byte 2010): expected at most 100 bytes, found more (an open "
                "quote, or no text?); raise reader_limits::record_bytes if the file is to be trusted",
                "'b'"});
  auto forgiving = text_line({"a", "b"}, {.ignore_errors = true, .limits = {.record_bytes = 100}}, d);
  CHECK(stream_of(forgiving) == strings{"'ok'", "'again'", "'b'"});
  CHECK(forgiving.skipped() == 2);
}

TEST_CASE("a line far longer than any buffer") {
  const std::string long_line(3 << 20, 'z');
  const auto d = disk_with({{"a", gzipped_text("a\n" + long_line + "\nb\n")}});
  auto lines = text_line("a", {}, d);
  CHECK(stream_of(lines) == strings{"'a'", "'" + long_line + "'", "'b'"});
  auto limited = text_line("a", {.ignore_errors = true, .limits = {.record_bytes = 1 << 20}}, d);
  CHECK(stream_of(limited) == strings{"'a'", "'b'"});
}

TEST_CASE("a compressed file that is torn gives the lines in front, an error, and then the next file") {
  const std::string packed = gzipped_text("one\ntwo\nthree\n");
  const auto d = disk_with({{"a", packed.substr(0, packed.size() - 6)}, {"b", "next\n"}});
  auto lines = text_line({"a", "b"}, {}, d);
  const auto found = stream_of(lines);
  REQUIRE(found.size() == 5);
  CHECK(found[2] == "'three'");
  CHECK(found[3] == text("error: a: the compressed data stops after ", packed.size() - 6,
                         " bytes, before its end; the file is truncated, get it again (in \"a\", record 4 (line 4, "
                         "byte 14))"));
  CHECK(found[4] == "'next'");
  auto forgiving = text_line({"a", "b"}, {.ignore_errors = true}, d);
  CHECK(stream_of(forgiving).size() == 4);
  CHECK(forgiving.skipped() == 1);
  auto told = text_line({"b", "b"}, {.compression = compression_type::gzip, .ignore_errors = true}, d);
  CHECK(stream_of(told).empty());
  CHECK(told.skipped() == 2);
}

TEST_CASE("a file that was cut under a saved position") {
  auto d = disk_with({{"a", "one\ntwo\nthree\n"}});
  auto lines = text_line("a", {}, d);
  datum e;
  for (int i = 0; i < 3; ++i) lines.next(e);
  std::vector<std::byte> position;
  lines.save(position);
  auto again = text_line("a", {}, disk_with({{"a", "one\n"}}));
  again.load(position);
  CHECK(message_of(status::failed_precondition, [&] { again.next(e); }) ==
        "\"a\" ends in front of byte 14, where the saved position is; it is another file, or was cut; restore_input = "
        "saved_input::ignored reads it from its beginning");
}
