#include <gradus/input/element_store.hpp>

#include <gradus/input/dataset.hpp>

#include "data.hpp"

using namespace data_tests;

TEST_CASE("of one size, or each of its own") {
  for (const bool fixed : {true, false}) {
    const components spec = fixed ? scalar : vectors;
    any_dataset source = fixed ? any_dataset(range_dataset(5)) : any_dataset(range_dataset(5).batch(1));
    detail::element_store store(spec), other(spec);
    for (std::size_t i = 0; i < 5; ++i) CHECK(store.take(source, i));
    CHECK(!store.take(source, 5));
    store.move(4, 1);
    datum d;
    store.copy_out(1, spec, d);
    CHECK(value_of(d) == 4);
    std::vector<std::byte> bytes;
    position_writer to(bytes);
    to.number(3);
    store.write(to, 3);
    for (const bool apply : {false, true}) {
      position_reader from(bytes, apply);
      CHECK(other.read(from, spec, 10, "elements") == 3);
      CHECK(from.left() == 0);
    }
    other.copy_out(2, spec, d);
    CHECK(value_of(d) == 2);
    position_reader few(bytes, true);
    message_of(status::data_loss, [&] { other.read(few, spec, 2, "elements"); });
  }
}
