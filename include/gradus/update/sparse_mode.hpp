// This setting decides whether a sparse gradient moves the rows that it does not list, for the rules that could do
// either.
#pragma once
#include "rule.hpp"

namespace gradus::inline GRADUS_BUILD {

enum class sparse_mode {
  lazy,      // nothing: those rows of the variable and of its slots are neither read nor written
  decay_all  // what gradient 0 does: moments decay there and the variable moves. Every row is read and written
};

}  // namespace gradus
