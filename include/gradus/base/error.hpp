// Errors have TensorFlow's names; there is one kind for each status code (tf.errors, canonical codes 1-16).
//
// With exceptions each kind is a type: `catch (const gradus::not_found& e)`, or `catch (const gradus::error& e)` for
// all of them, with `e.kind()`. Under -fno-exceptions `raise` calls `gradus::on_error`, which the program defines;
// without a definition, or if it returns, the program traps.
//
// A message tells what was expected, what was found, and what to do.
#pragma once
#include "build.hpp"

#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#if defined(__cpp_exceptions)
#include <stdexcept>
#endif

namespace gradus {  // of every build: one part of a program catches the errors of another

enum class status : int {
  cancelled = 1,
  unknown = 2,
  invalid_argument = 3,
  deadline_exceeded = 4,
  not_found = 5,
  already_exists = 6,
  permission_denied = 7,
  resource_exhausted = 8,
  failed_precondition = 9,
  aborted = 10,
  out_of_range = 11,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
  data_loss = 15,
  unauthenticated = 16
};

constexpr std::string_view name_of(status s) {
  constexpr std::string_view names[] = {
      "ok",        "cancelled",      "unknown",           "invalid_argument",   "deadline_exceeded",
      "not_found", "already_exists", "permission_denied", "resource_exhausted", "failed_precondition",
      "aborted",   "out_of_range",   "unimplemented",     "internal",           "unavailable",
      "data_loss", "unauthenticated"};
  return names[static_cast<int>(s)];
}

#if defined(__cpp_exceptions)
// The base class of all errors of the library. `what()` is one or a few sentences for a person; `kind()` is for the
// program.
class error : public std::runtime_error {
public:
  error(status kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  status kind() const noexcept { return kind_; }

private:
  status kind_;
};

template <status Kind>
class error_of : public error {
public:
  explicit error_of(const std::string& message) : error(Kind, message) {}
};

// The kinds are classes and not aliases, because the message of an uncaught error has the name of its class.
#define GRADUS_ERROR(kind)                           \
  class kind final : public error_of<status::kind> { \
  public:                                            \
    using error_of::error_of;                        \
  }
GRADUS_ERROR(cancelled);
GRADUS_ERROR(unknown);
GRADUS_ERROR(invalid_argument);
GRADUS_ERROR(deadline_exceeded);
GRADUS_ERROR(not_found);
GRADUS_ERROR(already_exists);
GRADUS_ERROR(permission_denied);
GRADUS_ERROR(resource_exhausted);
GRADUS_ERROR(failed_precondition);
GRADUS_ERROR(out_of_range);
GRADUS_ERROR(unimplemented);
GRADUS_ERROR(internal);
GRADUS_ERROR(unavailable);
GRADUS_ERROR(data_loss);
GRADUS_ERROR(unauthenticated);
#undef GRADUS_ERROR
class aborted : public error_of<status::aborted> {  // not final: a run's loss of its cluster is one
public:
  using error_of::error_of;
};
#else
// A program that is built with -fno-exceptions defines this function, which must not return.
[[gnu::weak]] void on_error(status kind, const char* message);
#endif

}  // namespace gradus
namespace gradus::inline GRADUS_BUILD {

// This is the only function that throws. It is not constexpr on purpose: reaching it in constant evaluation is the
// compile error. It is cold and out of line, as the functions for messages below are, since a compiler would otherwise
// inline them everywhere, and they would be most of the inlined code.
[[noreturn, gnu::cold]] void raise(status kind, const std::string& message);
// The overload for a constant message. Without exceptions it makes no string, so a program without a heap needs none.
[[noreturn, gnu::cold]] void raise(status kind, const char* message);

namespace detail {
// A part of a message. All parts have one type, and one function joins them: when each combination of types had a
// function of its own, these were a good part of what a small program compiled.
struct message_piece {
  enum kinds : int { words, letter, truth, negative, natural, floating };
  using writer = std::to_chars_result (*)(char* first, char* last, double);
  static constexpr std::size_t unknown = ~std::size_t{0};  // size is then found by the terminating zero
  // The object is small, since every message fills an array of them.
  union {
    const char* first;
    std::uint64_t number;  // two's complement where negative
    double real;
  };
  union {
    std::size_t size;
    // A pointer, so that a program whose messages have no floating-point numbers does not link the tables of their
    // conversion (130 KB).
    writer write;
  };
  int kind = words;

  constexpr message_piece(std::string_view s) : first(s.data()), size(s.size()) {}
  constexpr message_piece(const char* s) : first(s), size(unknown) {}
  constexpr message_piece(const std::string& s) : first(s.data()), size(s.size()) {}
  constexpr message_piece(char c) : number(static_cast<unsigned char>(c)), size(0), kind(letter) {}
  constexpr message_piece(std::same_as<bool> auto b) : number(b ? 1 : 0), size(0), kind(truth) {}
  template <std::integral Integer>
    requires(!std::same_as<Integer, bool> && !std::same_as<Integer, char>)
  constexpr message_piece(Integer n)
      : number(static_cast<std::uint64_t>(n)), size(0), kind(n < 0 ? negative : natural) {}
  constexpr message_piece(float x) : real(static_cast<double>(x)), write(write_as<float>), kind(floating) {}
  constexpr message_piece(double x) : real(x), write(write_as<double>), kind(floating) {}

  constexpr std::string_view text() const {
    return size == unknown ? std::string_view(first) : std::string_view(first, size);
  }

private:
  template <class Real>
  static std::to_chars_result write_as(char* first, char* last, double x) {
    return std::to_chars(first, last, static_cast<Real>(x));
  }
};
// A message on the stack, which is truncated if it does not fit.
struct short_text {
  char characters[256] = {};
  std::size_t size = 0;
  void append(const char* from, std::size_t n) {
    for (std::size_t i = 0; i < n && size + 1 < sizeof characters; ++i) characters[size++] = from[i];
  }
};
[[gnu::cold]] std::string joined(const message_piece* list, std::size_t n);
[[noreturn, gnu::cold]] void raise_joined(status kind, const message_piece* list, std::size_t n);
}  // namespace detail

namespace detail {
// The type in which `text` passes an argument on. The types of two literals differ if their lengths do; here there is
// one for all literals, one for all other strings, and one for all whole numbers of a sign. So sentences of the same
// form share a function.
template <class T>
struct passed_piece {
  using type = const T&;
};
template <std::size_t N>
struct passed_piece<char[N]> {
  using type = const char*;
};
template <class T>
  requires std::same_as<T, std::string> || std::same_as<T, std::string_view>
struct passed_piece<T> {
  using type = std::string_view;
};
template <std::integral T>
  requires(!std::same_as<T, bool> && !std::same_as<T, char>)
struct passed_piece<T> {
  using type = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
};

template <class... Passed>
[[gnu::cold, gnu::noinline]] std::string text_of(Passed... pieces) {
  const message_piece list[] = {message_piece(pieces)..., std::string_view()};  // never empty
  return joined(list, sizeof...(Passed));
}
}  // namespace detail

// Returns a message of pieces: text("expected ", n, " bytes, found ", m). Numbers are written in the shortest exact
// form.
template <class... Pieces>
std::string text(const Pieces&... pieces) {
  return detail::text_of<typename detail::passed_piece<Pieces>::type...>(pieces...);
}

// Does raise(kind, text(pieces...)). Without exceptions it needs no heap, and the message is cut after 255 characters.
// Code that runs in a step raises by this overload.
template <class First, class Second, class... Rest>
[[noreturn, gnu::cold, gnu::noinline]] void raise(status kind, const First& first, const Second& second,
                                                  const Rest&... rest) {
  const detail::message_piece list[] = {detail::message_piece(first), detail::message_piece(second),
                                        detail::message_piece(rest)...};
  detail::raise_joined(kind, list, 2 + sizeof...(Rest));
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "error.ipp"
#endif
