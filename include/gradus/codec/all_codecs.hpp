// This header lists every codec of the library as types, for programs that read any checkpoint and for tests that run
// over all:
//
//   all_codecs::with("runs/digits", posix{}, [&](auto codec, const std::string& path) { ... });      as with_codec<...>
//   all_codecs::for_each([]<class C>(std::type_identity<C>) { std::puts(C::name.data()); });
//
// It needs cereal. A program that reads fewer formats lists their codecs: with_codec<flat_binary, safetensors>(...).
#pragma once
#include "../base/build.hpp"

#include <type_traits>

#include "cereal.hpp"
#include "cereal_json.hpp"
#include "detect.hpp"
#include "flat.hpp"
#include "npz.hpp"
#include "safetensors.hpp"
#include "tensor_bundle.hpp"

namespace gradus::inline GRADUS_BUILD {

template <codec... Codecs>
struct codec_list {
  static constexpr std::size_t size = sizeof...(Codecs);
  // Calls f(std::type_identity<codec>{}) for each codec.
  template <class F>
  static constexpr void for_each(F&& f) {
    (f(std::type_identity<Codecs>{}), ...);
  }
  // Detects the checkpoint at a path, or takes a detected one, with the codec of the list that wrote it (detect.hpp).
  template <class... Arguments>
  static decltype(auto) with(Arguments&&... arguments) {
    return with_codec<Codecs...>(std::forward<Arguments>(arguments)...);
  }
};

// sharded<C> is detected for each C, and therefore not listed.
using all_codecs =
    codec_list<flat_binary, cereal_binary, cereal_portable, cereal_json, safetensors, npz, tensor_bundle>;

}  // namespace gradus
