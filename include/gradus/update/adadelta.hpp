// Moved to update/rules/adadelta.hpp. The old name is here until 0.7.0.
#pragma once
#include "rules/adadelta.hpp"
