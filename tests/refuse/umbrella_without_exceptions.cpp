// compiled with: -fno-exceptions
// expect: exceptions (no -fno-exceptions); without them include gradus/run/session.hpp
#ifdef FIX
#include <gradus/checkpoint/saver.hpp>
#include <gradus/run/session.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/run/updater.hpp>
#else
#include <gradus/gradus.hpp>
#endif

int main() {}
