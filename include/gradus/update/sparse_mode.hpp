// This setting decides what a sparse gradient does to the rows for which it has no values, for the rules that support
// both.
#pragma once
#include "rule.hpp"

namespace gradus::inline GRADUS_BUILD {

enum class sparse_mode {
  lazy,      // nothing: those rows of the variable and of its slots are neither read nor written
  decay_all  // what gradient 0 would do: moments decay and the variable moves. Every row is read and written
};

}  // namespace gradus
