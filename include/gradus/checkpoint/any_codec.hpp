// Moved to codec/any_codec.hpp. The old name is here until 0.7.0.
#pragma once
#include "../codec/any_codec.hpp"
