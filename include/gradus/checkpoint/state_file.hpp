// Moved to codec/state_file.hpp. The old name is here until 0.7.0.
#pragma once
#include "../codec/state_file.hpp"
