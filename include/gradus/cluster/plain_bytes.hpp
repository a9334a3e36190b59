// This header writes values as bytes, and reads them back, by their members: in this form the settings of a program's
// optimizer are compared between tasks and sent to a parameter server.
//
//   put_plain(out, policy);                         // if can_send<Policy>
//   auto policy = take_plain<Policy>(in, texts);    // equal to it
//   show_plain(policy);                             // "{0.1 1000 true}", for a sentence about a difference
//
// These types can be sent: numbers, enumerations, strings; optional, vector, array and tuple of those; a plain struct
// of those (base/fields.hpp); types without members, such as a lambda without captures; chain, multi, vary, matching.
// These cannot: pointers, std::function, a lambda with captures. The bytes are read by the same program on another
// machine, but the sender is not trusted: lengths are checked against the bytes that are there.
#pragma once
#include "../base/build.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "../base/fields.hpp"
#include "../base/shape.hpp"
#include "protocol/bytes.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Owns the texts to which string_views in values that were read refer.
using kept_texts = std::deque<std::string>;

template <class T>
struct plain_list : std::false_type {};  // a list of any length
template <class T>
struct plain_list<std::vector<T>> : std::true_type {};
template <class T>
struct plain_optional : std::false_type {};
template <class T>
struct plain_optional<std::optional<T>> : std::true_type {};
template <class T>
concept plain_tuple = requires { std::tuple_size<T>::value; };
template <class T>
concept plain_number = std::is_arithmetic_v<T> || std::is_enum_v<T>;
template <class T>
concept plain_text = std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view>;
template <class T>
concept plain_nothing = std::is_empty_v<T> && std::is_default_constructible_v<T>;
template <class T>
concept sent_as_other = requires(const T& x) { T::from_sent(x.sent_as()); };

template <class T>
consteval bool can_send_it();
template <class T>
concept can_send = can_send_it<std::remove_cvref_t<T>>();

template <class Tuple>
inline constexpr bool can_send_all = false;
template <class... T>
inline constexpr bool can_send_all<std::tuple<T...>> = (can_send<T> && ...);

template <class T>
consteval bool can_send_it() {
  if constexpr (plain_number<T> || plain_text<T> || plain_nothing<T> || std::is_same_v<T, extents>)
    return true;
  else if constexpr (plain_optional<T>::value || plain_list<T>::value)
    return can_send<typename T::value_type>;
  else if constexpr (sent_as_other<T>)
    return can_send<decltype(std::declval<const T&>().sent_as())>;
  else if constexpr (plain_tuple<T>)
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (can_send<std::tuple_element_t<I, T>> && ...);
    }(std::make_index_sequence<std::tuple_size_v<T>>{});
  else if constexpr (plain_struct<T>)
    return []<class... M>(std::type_identity<std::tuple<M&...>>) {
      return ((can_send<M> && !std::is_const_v<M>)&&...);
    }(std::type_identity<decltype(tie_fields(std::declval<T&>()))>{});
  else
    return false;
}

// Calls f(member) for the members of a tuple, array or plain struct.
template <class T, class F>
void each_member(T& x, F&& f) {
  if constexpr (plain_tuple<std::remove_const_t<T>>)
    std::apply([&](auto&... m) { (f(m), ...); }, x);
  else
    each_field(x, f);
}
template <can_send T>
void put_plain(bytes_out& out, const T& x) {
  if constexpr (plain_number<T>) {
    out.number(x);
  } else if constexpr (plain_text<T>) {
    out.string(x);
  } else if constexpr (plain_nothing<T>) {
  } else if constexpr (std::is_same_v<T, extents>) {
    out.number(static_cast<std::uint8_t>(x.rank));
    for (int i = 0; i < x.rank; ++i) out.number(x[i]);
  } else if constexpr (plain_optional<T>::value) {
    out.number(static_cast<std::uint8_t>(x.has_value()));
    if (x) put_plain(out, *x);
  } else if constexpr (plain_list<T>::value) {
    out.number(static_cast<std::uint32_t>(x.size()));
    for (const auto& one : x) put_plain(out, one);
  } else if constexpr (sent_as_other<T>) {
    put_plain(out, x.sent_as());
  } else {
    each_member(x, [&](const auto& m) { put_plain(out, m); });
  }
}

// Raises data_loss for malformed bytes.
template <can_send T>
T take_plain(bytes_in& in, kept_texts& texts) {
  if constexpr (std::is_same_v<T, bool>) {
    return in.number<std::uint8_t>() != 0;
  } else if constexpr (plain_number<T>) {
    return in.number<T>();
  } else if constexpr (std::is_same_v<T, std::string_view>) {
    return texts.emplace_back(in.string());
  } else if constexpr (plain_text<T>) {
    return in.string();
  } else if constexpr (plain_nothing<T>) {
    return T{};
  } else if constexpr (std::is_same_v<T, extents>) {
    const int rank = in.number<std::uint8_t>();
    if (rank > max_rank) in.refuse(text("a shape of rank ", rank, "; expected at most ", max_rank));
    extents e;
    for (int i = 0; i < rank; ++i) e.push(in.number<std::int64_t>());
    return e;
  } else if constexpr (plain_optional<T>::value) {
    if (in.number<std::uint8_t>() == 0) return {};
    return take_plain<typename T::value_type>(in, texts);
  } else if constexpr (plain_list<T>::value) {
    T list;
    for (std::size_t n = in.count(1); n > 0; --n) list.push_back(take_plain<typename T::value_type>(in, texts));
    return list;
  } else if constexpr (sent_as_other<T>) {
    return T::from_sent(take_plain<std::remove_cvref_t<decltype(std::declval<const T&>().sent_as())>>(in, texts));
  } else if constexpr (plain_tuple<T>) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {  // braces evaluate in order
      return T{take_plain<std::tuple_element_t<I, T>>(in, texts)...};
    }(std::make_index_sequence<std::tuple_size_v<T>>{});
  } else {
    return [&]<class... M>(std::type_identity<std::tuple<M&...>>) {
      return T{take_plain<M>(in, texts)...};
    }(std::type_identity<decltype(tie_fields(std::declval<T&>()))>{});
  }
}

// Returns x as text, with "..." for parts that cannot be shown: an array's bytes, a lambda's captures.
template <class T>
std::string show_plain(const T& x) {
  if constexpr (std::is_same_v<T, bool>) {
    return x ? "true" : "false";
  } else if constexpr (std::is_enum_v<T>) {
    return text(static_cast<std::int64_t>(x));
  } else if constexpr (plain_number<T>) {
    return text(x);
  } else if constexpr (plain_text<T>) {
    return text('"', x, '"');
  } else if constexpr (plain_nothing<T>) {
    return "{}";
  } else if constexpr (std::is_same_v<T, extents>) {
    return to_text(x);
  } else if constexpr (plain_optional<T>::value) {
    return x ? show_plain(*x) : "none";
  } else if constexpr (sent_as_other<T>) {
    return show_plain(x.sent_as());
  } else if constexpr (plain_list<T>::value) {
    std::string s = "{";
    for (const auto& one : x) s += (s.size() > 1 ? " " : "") + show_plain(one);
    return s + "}";
  } else if constexpr (plain_tuple<T> || plain_struct<T>) {
    std::string s = "{";
    each_member(x, [&](const auto& m) { s += (s.size() > 1 ? " " : "") + show_plain(m); });
    return s + "}";
  } else {
    return "...";
  }
}

}  // namespace gradus::detail
