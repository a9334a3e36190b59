// Messages as protoc 3.21.12 --encode --deterministic_output writes them (map keys sorted), and as the file formats'
// description has them.
#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

namespace example_bytes {

inline std::vector<std::byte> hex(std::string_view s) {
  std::vector<std::byte> out;
  int high = -1;
  for (const char c : s) {
    if (c == ' ' || c == '\n') continue;
    const int digit = c <= '9' ? c - '0' : c - 'a' + 10;
    if (high >= 0) out.push_back(static_cast<std::byte>(high * 16 + digit));
    high = high >= 0 ? -1 : digit;
  }
  return out;
}

// x=[1,-2] float, y=[3] int64, s=["hi"], in this order and sorted.
inline constexpr std::string_view xys =
    "0a 2c 0a 11 0a 01 78 12 0c 12 0a 0a 08 00 00 80 3f 00 00 00 c0 0a 0a 0a 01 79 12 05 1a 03 0a 01"
    "03 0a 0b 0a 01 73 12 06 0a 04 0a 02 68 69";
inline constexpr std::string_view sxy =
    "0a2c0a0b0a017312060a040a0268690a110a0178120c120a0a080000803f000000c00a0a0a017912051a030a0103";
// a: floats, none; b=[-1, 300, 2^63-1, -2^63]; c=["", "\0\xff"]; d: a Feature without a list.
inline constexpr std::string_view abcd =
    "0a490a070a0161120212000a280a016212231a210a1fffffffffffffffffff01ac02ffffffffffffffff7f808080808080808080010a0d0a01"
    "6312080a060a000a0200ff0a050a01641200";
// SequenceExample. Context n=[2]; lists: "none" without steps, t=[1,2],[3,4], w=["a","bc"],[],["d"].
inline constexpr std::string_view sequence =
    "0a0c0a0a0a016e12051a030a0102124a0a080a046e6f6e6512000a210a0174121c0a0c120a0a080000803f000000400a0c120a0a0800004040"
    "000080400a1b0a017712160a090a070a01610a0262630a020a000a050a030a0164";

}  // namespace example_bytes
