// Moved to codec/manifest.hpp. The old name is here until 0.7.0.
#pragma once
#include "../codec/manifest.hpp"
