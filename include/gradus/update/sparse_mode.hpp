// This setting decides whether a sparse gradient moves the rows that it does not list, for the rules that support both.
#pragma once
#include "rule.hpp"

namespace gradus::inline GRADUS_BUILD {

enum class sparse_mode {
  lazy,      // no: those rows of the variable and of its slots are neither read nor written
  decay_all  // as gradient 0 would: moments decay there and the variable moves. Every row is read and written
};

}  // namespace gradus
