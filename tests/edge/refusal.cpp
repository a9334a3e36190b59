// Without exceptions an error reaches the handler that the program defines, with its kind and its text.
// boards: with a standard library
// flash at most: m4f 4640, m3 4390
#include <gradus/base/error.hpp>
#include <gradus/base/shape.hpp>

#include <string_view>

#include "../../examples/starter/board/board.hpp"

namespace gradus {
void on_error(status kind, const char* message) {
  board::say(message);
  board::say("\nkind", static_cast<std::uint32_t>(kind));
  // The handler may not return.
  board::leave(kind == status::invalid_argument &&
                       std::string_view(message) == "a shape has at most 6 extents, this one has 7"
                   ? 0
                   : 1);
}
}  // namespace gradus

int main() {
  gradus::shape s{1, 2, 3, 4, 5, 6};
  s.push(7);
  return 2;
}
