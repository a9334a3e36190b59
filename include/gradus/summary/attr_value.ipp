// The bodies of attr_value.hpp.
#pragma once
#include <memory>

#include "../base/body.hpp"
#include "attr_value.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY attr_value::attr_value(const attr_value& o) : kind_(o.kind_), integer_(0) {
  switch (kind_) {
  case kind::integer: integer_ = o.integer_; break;
  case kind::real: real_ = o.real_; break;
  case kind::flag: flag_ = o.flag_; break;
  case kind::type: type_ = o.type_; break;
  case kind::shape: std::construct_at(&shape_, o.shape_); break;
  case kind::text: std::construct_at(&text_, o.text_); break;
  case kind::tensor: std::construct_at(&tensor_, o.tensor_); break;
  case kind::integers: std::construct_at(&integers_, o.integers_); break;
  case kind::reals: std::construct_at(&reals_, o.reals_); break;
  case kind::texts: std::construct_at(&texts_, o.texts_); break;
  case kind::types: std::construct_at(&types_, o.types_); break;
  case kind::shapes: std::construct_at(&shapes_, o.shapes_); break;
  }
}

GRADUS_BODY void attr_value::take(attr_value& o) {
  kind_ = o.kind_;
  switch (kind_) {
  case kind::integer: integer_ = o.integer_; break;
  case kind::real: real_ = o.real_; break;
  case kind::flag: flag_ = o.flag_; break;
  case kind::type: type_ = o.type_; break;
  case kind::shape: std::construct_at(&shape_, std::move(o.shape_)); break;
  case kind::text: std::construct_at(&text_, std::move(o.text_)); break;
  case kind::tensor: std::construct_at(&tensor_, std::move(o.tensor_)); break;
  case kind::integers: std::construct_at(&integers_, std::move(o.integers_)); break;
  case kind::reals: std::construct_at(&reals_, std::move(o.reals_)); break;
  case kind::texts: std::construct_at(&texts_, std::move(o.texts_)); break;
  case kind::types: std::construct_at(&types_, std::move(o.types_)); break;
  case kind::shapes: std::construct_at(&shapes_, std::move(o.shapes_)); break;
  }
}

GRADUS_BODY void attr_value::drop() {
  switch (kind_) {
  case kind::shape: std::destroy_at(&shape_); break;
  case kind::text: std::destroy_at(&text_); break;
  case kind::tensor: std::destroy_at(&tensor_); break;
  case kind::integers: std::destroy_at(&integers_); break;
  case kind::reals: std::destroy_at(&reals_); break;
  case kind::texts: std::destroy_at(&texts_); break;
  case kind::types: std::destroy_at(&types_); break;
  case kind::shapes: std::destroy_at(&shapes_); break;
  default: break;
  }
}

GRADUS_BODY attr_value::attr_value(attr_value&& o) noexcept : integer_(0) { take(o); }
GRADUS_BODY attr_value& attr_value::operator=(attr_value o) noexcept {
  drop();
  take(o);
  return *this;
}
GRADUS_BODY attr_value::~attr_value() { drop(); }

}  // namespace gradus
