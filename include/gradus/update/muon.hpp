// Moved to update/rules/muon.hpp. The old name is here until 0.7.0.
#pragma once
#include "rules/muon.hpp"
