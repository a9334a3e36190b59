// What a call says when it is refused, and that it is refused in the way that is expected.
#pragma once
#include <doctest/doctest.h>

#include <gradus/base/error.hpp>
#include <string>

template <class Call>
std::string message_of(gradus::status expected, Call&& call) {
  try {
    call();
  } catch (const gradus::error& e) {
    CHECK(e.kind() == expected);
    return e.what();
  }
  return "no error";
}
