// Moved to update/rules/soap.hpp. The old name is here until 0.7.0.
#pragma once
#include "rules/soap.hpp"
