#include <gradus/input/unit_stage.hpp>

#include "data.hpp"

using namespace data_tests;

namespace {
// Elements twice as long each time.
class doubling final : public detail::unit_stage<doubling, false> {
public:
  const components& element_spec() const { return spec_; }
  bool pull_unit(datum& out) {
    if (next_ == 4) return false;
    out.conform(spec_);
    out.resize(0, {std::int64_t{1} << next_++});
    return true;
  }
  void rewind() { next_ = 0; }
  void define(std::string& to) const { to += "doubling"; }
  void write(position_writer& to) const { to.number(next_); }
  void read(position_reader& from) {
    const auto next = from.number(0, 4, "the next");
    if (from.apply()) next_ = next;
  }

private:
  components spec_ = vectors;
  std::int64_t next_ = 0;
};
}  // namespace

TEST_CASE("what gives data one by one is a dataset") {
  static_assert(dataset<doubling> && datum_dataset<doubling> && !batched_dataset<doubling>);
  doubling d;
  CHECK(d.pull({}, 0, 3) == 3);
  datum e;
  CHECK(d.next(e));
  CHECK(e[0].dims == extents{8});
  CHECK(!d.next(e));
  std::int64_t value = 0;
  const tensor_view row(std::span<std::int64_t>(&value, 1), {1});
  d.rewind();
  CHECK(message_of(status::failed_precondition, [&] {
          d.pull({&row, 1}, 0, 1);
        }).find("differs in size") != std::string::npos);
  resumes([] { return doubling(); });
}
