#include "gradus/codec/bundle_notes.hpp"

#include "bundle_files.hpp"

using namespace bundle_test;
using detail::bundle_notes;

TEST_CASE("bundle_notes: what is written is read") {
  const std::int64_t step = -12;
  const metadata about{
      {"", "empty key"}, {"a=b", "c=d"}, {"back\\slash", "\\n"}, {"line", "one\ntwo\n"}, {"step 3", ""}};
  const auto notes = bundle_notes::write(&step, about);
  CHECK(notes == "step -12\n=empty key\na\\eb=c=d\nback\\\\slash=\\\\n\nline=one\\ntwo\\n\nstep 3=\n");
  std::optional<std::int64_t> read_step;
  metadata read;
  CHECK(bundle_notes::read(notes, read_step, read));
  CHECK(read_step == -12);
  CHECK(read == about);
  read_step.reset(), read.clear();
  CHECK(bundle_notes::read(bundle_notes::write(nullptr, {}), read_step, read));
  CHECK(!read_step);
}

TEST_CASE("bundle_notes: a scalar that counts steps") {
  const auto step = [](dtype type, auto value, const extents& dims = {}) {
    return detail::step_of({"global_step", type, dims, std::as_bytes(std::span(&value, 1)), false});
  };
  CHECK(step(int64, std::int64_t{1} << 60) == std::int64_t{1} << 60);
  CHECK(step(int32, std::int32_t{-1}) == -1);
  CHECK(step(float32, 16777216.0f) == 16777216);
  CHECK(!step(float32, -1.0f));
  CHECK(!step(float64, 1.0));
  CHECK(!step(int64, std::int64_t{1}, {1}));
  CHECK(!step(int32, std::int64_t{1}));
  CHECK(detail::bundle_data_suffix(0, 1) == ".data-00000-of-00001");
  CHECK(detail::bundle_data_suffix(12345, 99999) == ".data-12345-of-99999");
}
