// The bodies of session_service.hpp.
#pragma once
#include "../base/body.hpp"
#include "session_service.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY const card* card_of_sessions(std::string_view name) {
  static constexpr const card* known[] = {&placeholder_card,
                                          &variable_card,
                                          &constant_card,
                                          &no_op_card,
                                          &cards::reshape,
                                          &cards::identity,
                                          &cards::stop_gradient,
                                          &cards::prevent_gradient,
                                          &cards::initialize_variables,
                                          &cards::is_variable_initialized,
                                          &cards::report_uninitialized,
                                          &cards::count_up_to};
  for (const card* c : known)
    if (c->name == name) return c;
  for (const card* c : queue_cards())
    if (c->name == name) return c;
  return nullptr;
}

}  // namespace gradus::detail
