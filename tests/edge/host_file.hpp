// A file of the machine that a board hangs on, read through its debugger (ARM semihosting); here through stdio.
#pragma once
#include <cstddef>
#include <span>

#include "../../examples/starter/board/board.hpp"

namespace board {

class host_file {
public:
  explicit host_file(const char* name) {
#if defined(BOARD_IS_BARE)
    std::size_t length = 0;
    while (name[length] != 0) ++length;
    const std::uintptr_t block[3] = {reinterpret_cast<std::uintptr_t>(name), 1, length};  // 1: "rb"
    file_ = ask_debugger(0x01, block);
#else
    file_ = std::fopen(name, "rb");
#endif
  }
  // Fills all of `to`; false at the end of the file, or if there is none.
  bool read(std::span<std::uint8_t> to) {
#if defined(BOARD_IS_BARE)
    const std::uintptr_t block[3] = {file_, reinterpret_cast<std::uintptr_t>(to.data()), to.size()};
    return file_ != ~std::uintptr_t{0} && ask_debugger(0x06, block) == 0;  // gives how many bytes were not read
#else
    return file_ != nullptr && std::fread(to.data(), 1, to.size(), file_) == to.size();
#endif
  }

private:
#if defined(BOARD_IS_BARE)
  std::uintptr_t file_;
#else
  std::FILE* file_;
#endif
};

}  // namespace board
