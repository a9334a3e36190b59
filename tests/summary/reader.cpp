#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <gradus/summary/reader.hpp>

using namespace gradus;

namespace {

using bytes = std::vector<std::byte>;

struct scratch_file {
  std::string folder = (std::filesystem::temp_directory_path() / "gradus-reader-XXXXXX").string();
  std::string path;
  scratch_file() {
    REQUIRE(mkdtemp(folder.data()) != nullptr);
    path = folder + "/events.out.tfevents.1.h";
  }
  ~scratch_file() { std::filesystem::remove_all(folder); }
  void hold(const bytes& b) const {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(b.data()), static_cast<std::streamsize>(b.size()));
  }
};

// A version event and scalars of steps 1 to 3.
bytes log_of_three() {
  bytes out;
  append_record(out, [](bytes& o) { encode_version(o, 1); });
  for (std::int64_t step = 1; step <= 3; ++step) {
    const scalar_value v{"loss", static_cast<float>(step)};
    append_record(out, [&](bytes& o) { encode_scalars(o, 2, step, {&v, 1}); });
  }
  return out;
}

}  // namespace

TEST_CASE("events in file order") {
  scratch_file file;
  file.hold(log_of_three());
  summary_iterator in(file.path);
  std::int64_t step = 0;
  for (const auto& e : in) {
    CHECK(e.step == step);
    CHECK(e.what == (step == 0 ? event_kind::file_version : event_kind::summary));
    if (step != 0) CHECK(e.values.at(0).simple_value == static_cast<float>(step));
    ++step;
  }
  CHECK(step == 4);
  CHECK_FALSE(in.truncated());
  file.hold({});
  for (const auto& e : summary_iterator(file.path)) FAIL(e.step);
}

TEST_CASE("a torn end is an end, and told") {
  scratch_file file;
  const bytes all = log_of_three();
  for (std::size_t n = 0; n < all.size(); ++n) {
    file.hold(bytes(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n)));
    summary_iterator in(file.path);
    std::size_t events = 0, whole = 0;
    for (event e; in.next(e);) ++events;
    record_reader records(span_source{std::span(all).first(n)});
    for (bytes payload; records.read(payload) == record_status::record;) ++whole;
    REQUIRE(events == whole);
    REQUIRE(in.truncated() == (records.offset() != n));
    event e;
    REQUIRE_FALSE(in.next(e));
  }
}

TEST_CASE("damage is data_loss, after the events before it") {
  scratch_file file;
  bytes damaged = log_of_three();
  damaged[50] ^= std::byte{4};  // in the first scalar
  file.hold(damaged);
  summary_iterator in(file.path);
  event e;
  CHECK(in.next(e));
  CHECK_THROWS_WITH_AS(in.next(e),
                       ("\"" + file.path +
                        "\": corrupted record at byte 40 (record 1, counted from 0): its checksum or length is "
                        "wrong; the events before it are good")
                           .c_str(),
                       data_loss);
  // A whole record that is no Event.
  bytes foreign;
  append_record(foreign, bytes{std::byte{0x12}, std::byte{0x7f}});
  file.hold(foreign);
  summary_iterator other(file.path);
  CHECK_THROWS_WITH_AS(other.next(e),
                       ("\"" + file.path +
                        "\": the record at byte 0 (record 0, counted from 0) is no event: malformed protobuf message: "
                        "field 2 says it holds 127 bytes, of which 0 are left")
                           .c_str(),
                       data_loss);
  CHECK_THROWS_AS(summary_iterator(file.folder + "/none"), not_found);
  CHECK_THROWS_AS(summary_iterator(file.folder), invalid_argument);
}
