// Moved to codec/bundle_notes.hpp. The old name is here until 0.7.0.
#pragma once
#include "../codec/bundle_notes.hpp"
