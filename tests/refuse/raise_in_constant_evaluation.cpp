// A shape that is refused while the compiler runs the builder stops the compilation, and names the place.
// expect: too_many
#include <gradus/base/shape.hpp>

#ifdef FIX
constexpr gradus::shape fits{1, 2, 3, 4, 5, 6};
#else
constexpr gradus::shape seven{1, 2, 3, 4, 5, 6, 7};
#endif

int main() {}
