// What a call says when it is refused, and that it is refused in the way that is expected.
#pragma once
#include <doctest/doctest.h>

#include <gradus/base/error.hpp>
#include <string>
#include <string_view>

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

// Whether it says so; a test that finds it does not prints all of it.
inline bool says(const std::string& all, std::string_view part) {
  INFO(all);
  return all.find(part) != std::string::npos;
}
