// Moved to codec/partition.hpp. The old name is here until 0.7.0.
#pragma once
#include "../codec/partition.hpp"
