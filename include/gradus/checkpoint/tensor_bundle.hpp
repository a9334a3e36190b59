// Moved to codec/tensor_bundle.hpp. The old name is here until 0.7.0.
#pragma once
#include "../codec/tensor_bundle.hpp"
