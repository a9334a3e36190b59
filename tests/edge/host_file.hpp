// A file of the machine that a board hangs on, through its debugger (ARM semihosting); here through stdio.
#pragma once
#include <cstddef>
#include <span>

#include "../../examples/starter/board/board.hpp"

namespace board {

class host_file {
public:
  enum mode { reads = 1, writes = 5 };  // "rb", "wb"
  explicit host_file(const char* name, mode m = reads) {
#if defined(BOARD_IS_BARE)
    std::size_t length = 0;
    while (name[length] != 0) ++length;
    const std::uintptr_t block[3] = {reinterpret_cast<std::uintptr_t>(name), static_cast<std::uintptr_t>(m), length};
    file_ = ask_debugger(0x01, block);
#else
    file_ = std::fopen(name, m == reads ? "rb" : "wb");
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

  // Reads what is there, at least one byte and at most all of `to`; none at the end of the file.
  std::span<std::byte> read_some(std::span<std::byte> to) {
#if defined(BOARD_IS_BARE)
    const std::uintptr_t block[3] = {file_, reinterpret_cast<std::uintptr_t>(to.data()), to.size()};
    return to.first(to.size() - ask_debugger(0x06, block));
#else
    return to.first(std::fread(to.data(), 1, to.size(), file_));
#endif
  }
  bool write(std::span<const std::byte> from) {
#if defined(BOARD_IS_BARE)
    const std::uintptr_t block[3] = {file_, reinterpret_cast<std::uintptr_t>(from.data()), from.size()};
    return ask_debugger(0x05, block) == 0;
#else
    return std::fwrite(from.data(), 1, from.size(), file_) == from.size() && std::fflush(file_) == 0;
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
