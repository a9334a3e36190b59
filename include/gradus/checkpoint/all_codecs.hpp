// Moved to codec/all_codecs.hpp. The old name is here until 0.7.0.
#pragma once
#include "../codec/all_codecs.hpp"
