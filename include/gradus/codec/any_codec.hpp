// `any_codec` is a type-erased codec: a saver calls it once per file.
#pragma once
#include "codec.hpp"

namespace gradus::inline GRADUS_BUILD {

class any_codec {
public:
  template <class C>
    requires(!std::same_as<C, any_codec> && codec<C>)
  any_codec(const C& c)
      : name(C::name),
        extension(C::extension),
        proof(C::proof),
        checks_itself(C::checks_itself),
        checks_tensors(gradus::checks_tensors<C>),
        each(name_of_each<C>()),
        encode_(&encode_by<C>),
        decode_(&decode_by<C>),
        state_(std::make_shared<const C>(c)) {}

  encoded encode(const snapshot& content) const { return encode_(state_.get(), content); }
  decoded decode(checkpoint_files& files) const { return decode_(state_.get(), files); }

  // The properties that the concept `codec` requires.
  std::string_view name, extension, proof;
  bool checks_itself, checks_tensors;
  std::string_view each;  // of a sharded codec: the name of its shards' codec; else empty

private:
  template <class C>
  static constexpr std::string_view name_of_each() {
    if constexpr (requires(const C& c) { std::remove_cvref_t<decltype(c.each)>::name; })
      return std::remove_cvref_t<decltype(std::declval<const C&>().each)>::name;
    else
      return {};
  }
  template <class C>
  static encoded encode_by(const void* c, const snapshot& content) {
    return static_cast<const C*>(c)->encode(content);
  }
  template <class C>
  static decoded decode_by(const void* c, checkpoint_files& files) {
    return static_cast<const C*>(c)->decode(files);
  }

  encoded (*encode_)(const void*, const snapshot&);
  decoded (*decode_)(const void*, checkpoint_files&);
  std::shared_ptr<const void> state_;
};

}  // namespace gradus
