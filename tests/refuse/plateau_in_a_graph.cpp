// expect: gradus: an optimizer of a graph passes no value to a schedule that observes one (reduce_on_plateau); use a
// within: 8 lines
#include <gradus/gradus.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/update/schedules/cosine.hpp>
#include <gradus/update/schedules/plateau.hpp>

#ifdef FIX
using schedule = gradus::cosine_decay;
#else
using schedule = gradus::reduce_on_plateau;
#endif

int main() { gradus::optimizer opt{gradus::adam{}, schedule{.initial = 0.01}}; }
