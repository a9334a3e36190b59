// Writes the digits that lenet.cpp learns: digits_file FILE EXAMPLES OTHERS. Two numbers of four bytes, then a label
// and 784 pixels an image.
#include <cstdio>
#include <cstdlib>

#include "../../../examples/digits/draw.hpp"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  std::FILE* const file = std::fopen(argv[1], "wb");
  if (file == nullptr) return 1;
  const long counts[] = {std::atol(argv[2]), std::atol(argv[3])};
  for (const long n : counts)
    for (int k = 0; k < 4; ++k) std::fputc(static_cast<int>(n >> 8 * k & 255), file);
  for (int k = 0; k < 2; ++k) {
    const digits::drawings all = digits::draw_digits(counts[k], static_cast<std::uint64_t>(k) + 1);
    for (std::size_t i = 0; i < all.labels.size(); ++i) {
      std::fputc(all.labels[i], file);
      std::fwrite(all.images.data() + i * digits::pixels, 1, digits::pixels, file);
    }
  }
  return std::fclose(file) == 0 ? 0 : 1;
}
