#include "gradus/base/owned.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <type_traits>
#include <utility>

using gradus::detail::make_owned;
using gradus::detail::owned;
using gradus::detail::owned_array;

namespace {
// Counts the objects that live.
struct counted {
  static inline int alive = 0;
  int number = 7;
  explicit counted(int n = 7) : number(n) { ++alive; }
  counted(const counted&) = delete;
  virtual ~counted() { --alive; }
};
struct derived final : counted {
  derived() : counted(9) {}
};
struct holder {  // of what is incomplete here
  struct inside;
  owned<inside> one;
  holder();
  ~holder();
};
struct holder::inside : counted {};
holder::holder() : one(new inside) {}
holder::~holder() = default;
}  // namespace

TEST_CASE("owned destroys what it owns, once, as std::unique_ptr does") {
  static_assert(!std::is_copy_constructible_v<owned<counted>> && !std::is_copy_assignable_v<owned<counted>>);
  static_assert(std::is_nothrow_move_constructible_v<owned<counted>> && sizeof(owned<counted>) == sizeof(void*));
  {
    owned<counted> a = make_owned<counted>(3), none;
    CHECK(a);
    CHECK(!none);
    CHECK(none == nullptr);
    CHECK(a->number == 3);
    owned<counted> b(std::move(a));
    CHECK(a == nullptr);
    CHECK((*b).number == 3);
    b = make_owned<counted>(4);
    CHECK(counted::alive == 1);
    owned<counted>& same = b;
    b = std::move(same);
    CHECK(b->number == 4);
    b.reset();
    CHECK(counted::alive == 0);
    b = owned<counted>(std::make_unique<derived>());  // a pointer to what is derived from it
    CHECK(b->number == 9);
    CHECK(counted::alive == 1);
    const std::unique_ptr<counted> out(b.release());
    CHECK(b.get() == nullptr);
    CHECK(counted::alive == 1);
  }
  CHECK(counted::alive == 0);
  {
    const holder h;
    CHECK(counted::alive == 1);
  }
  CHECK(counted::alive == 0);
}

TEST_CASE("owned_array holds n elements, zero at first") {
  owned_array<int> numbers(100);
  int sum = 0;
  for (std::size_t i = 0; i < 100; ++i) sum += numbers[i];
  CHECK(sum == 0);
  {
    owned_array<counted> a(3), b(2);
    CHECK(counted::alive == 5);
    a = std::move(b);
    CHECK(counted::alive == 2);
    CHECK(b.get() == nullptr);
    owned_array<counted>& same = a;
    a = std::move(same);
    CHECK(counted::alive == 2);
    const owned_array<counted> c(std::move(a));
    CHECK(c[1].number == 7);
    CHECK(counted::alive == 2);
  }
  CHECK(counted::alive == 0);
}
