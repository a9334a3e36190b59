// The attributes of a GraphDef's nodes (tensorflow/core/framework/attr_value.proto) are a number, a text, a dtype, a
// shape, a tensor, or a list of some of those.
#pragma once
#include "../base/build.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "../base/dtype.hpp"
#include "../base/error.hpp"

namespace gradus::inline GRADUS_BUILD {

// The shape of a tensor; -1 stands for an extent that is not known before a step runs.
struct shape_def {
  std::vector<std::int64_t> dims;
  bool unknown_rank = false;
};

// TensorFlow's number of the string dtype. No tensor of this library has it: it is for constants and attributes of a
// GraphDef only.
inline constexpr dtype string_in_graphs{7};

// The value of a constant. `content` holds all elements, row-major, little-endian; all extents are known. A constant of
// strings holds them in `strings`.
struct tensor_def {
  dtype type = dtype::none;
  std::vector<std::int64_t> dims;
  std::vector<std::byte> content;
  std::vector<std::string> strings = {};

  template <computable T>
  static tensor_def scalar(T value) {
    tensor_def t{dtype_of<T>, {}, std::vector<std::byte>(sizeof(T))};
    std::memcpy(t.content.data(), &value, sizeof(T));
    return t;
  }
};

// An attribute has one of twelve types. A vector is TensorFlow's list(...).
//
//   attr_value v = true;
//   if (const bool* b = v.get_if<bool>()) ...
//   v.visit([](const auto& x) { ... });
//
// It is written out by hand, since a std::variant of twelve types costs every file that includes it 30 MB of the
// compiler's memory.
class attr_value {
public:
  enum class kind : unsigned char {
    integer,  // std::int64_t
    real,     // float
    flag,     // bool
    type,     // dtype
    shape,    // shape_def
    text,     // std::string
    tensor,   // tensor_def
    integers,
    reals,
    texts,
    types,
    shapes
  };

  attr_value() : attr_value(std::int64_t{0}) {}
  template <std::signed_integral T>
  attr_value(T v) : kind_(kind::integer), integer_(v) {}
  template <std::same_as<float> T>
  attr_value(T v) : kind_(kind::real), real_(v) {}
  template <std::same_as<bool> T>
  attr_value(T v) : kind_(kind::flag), flag_(v) {}
  attr_value(dtype v) : kind_(kind::type), type_(v) {}
  attr_value(shape_def v) : kind_(kind::shape), shape_(std::move(v)) {}
  attr_value(std::string v) : kind_(kind::text), text_(std::move(v)) {}
  attr_value(const char* v) : attr_value(std::string(v)) {}
  attr_value(tensor_def v) : kind_(kind::tensor), tensor_(std::move(v)) {}
  attr_value(std::vector<std::int64_t> v) : kind_(kind::integers), integers_(std::move(v)) {}
  attr_value(std::vector<float> v) : kind_(kind::reals), reals_(std::move(v)) {}
  attr_value(std::vector<std::string> v) : kind_(kind::texts), texts_(std::move(v)) {}
  attr_value(std::vector<dtype> v) : kind_(kind::types), types_(std::move(v)) {}
  attr_value(std::vector<shape_def> v) : kind_(kind::shapes), shapes_(std::move(v)) {}

  attr_value(const attr_value& o);
  attr_value(attr_value&& o) noexcept;
  attr_value& operator=(attr_value o) noexcept;
  ~attr_value();

  kind holds() const { return kind_; }
  // Returns a pointer to the value if it is of type T; else null.
  template <class T>
  const T* get_if() const {
    return kind_ == kind_of(static_cast<const T*>(nullptr)) ? static_cast<const T*>(held()) : nullptr;
  }
  // Returns the value. Raises internal if it is of another type.
  template <class T>
  const T& get() const {
    if (const T* v = get_if<T>()) return *v;
    raise(status::internal, "an attribute is of another type than the program takes it for");
  }
  // Calls f with the value, in its type.
  template <class F>
  decltype(auto) visit(F&& f) const {
    switch (kind_) {
    case kind::real: return f(real_);
    case kind::flag: return f(flag_);
    case kind::type: return f(type_);
    case kind::shape: return f(shape_);
    case kind::text: return f(text_);
    case kind::tensor: return f(tensor_);
    case kind::integers: return f(integers_);
    case kind::reals: return f(reals_);
    case kind::texts: return f(texts_);
    case kind::types: return f(types_);
    case kind::shapes: return f(shapes_);
    case kind::integer: break;
    }
    return f(integer_);
  }

private:
  kind kind_;
  union {
    std::int64_t integer_;
    float real_;
    bool flag_;
    dtype type_;
    shape_def shape_;
    std::string text_;
    tensor_def tensor_;
    std::vector<std::int64_t> integers_;
    std::vector<float> reals_;
    std::vector<std::string> texts_;
    std::vector<dtype> types_;
    std::vector<shape_def> shapes_;
  };

  static constexpr kind kind_of(const std::int64_t*) { return kind::integer; }
  static constexpr kind kind_of(const float*) { return kind::real; }
  static constexpr kind kind_of(const bool*) { return kind::flag; }
  static constexpr kind kind_of(const dtype*) { return kind::type; }
  static constexpr kind kind_of(const shape_def*) { return kind::shape; }
  static constexpr kind kind_of(const std::string*) { return kind::text; }
  static constexpr kind kind_of(const tensor_def*) { return kind::tensor; }
  static constexpr kind kind_of(const std::vector<std::int64_t>*) { return kind::integers; }
  static constexpr kind kind_of(const std::vector<float>*) { return kind::reals; }
  static constexpr kind kind_of(const std::vector<std::string>*) { return kind::texts; }
  static constexpr kind kind_of(const std::vector<dtype>*) { return kind::types; }
  static constexpr kind kind_of(const std::vector<shape_def>*) { return kind::shapes; }

  // Returns the address of the value: members of a union lie at its beginning.
  const void* held() const { return &integer_; }
  void take(attr_value& o);  // requires that no value is held; o keeps the moved-from value
  void drop();
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "attr_value.ipp"
#endif
