#include <gradus/input/stage_list.hpp>

using namespace gradus;

// A declared stage is known by its missing body; tests/refuse/stage_without_its_header.cpp reads the sentence.
static_assert(!detail::complete<mapped<false>> && !detail::complete<windowed> && !detail::complete<cached<true>>);
static_assert(detail::complete<mapping> && detail::complete<calling>);
