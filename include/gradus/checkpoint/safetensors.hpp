// Moved to codec/safetensors.hpp. The old name is here until 0.7.0.
#pragma once
#include "../codec/safetensors.hpp"
