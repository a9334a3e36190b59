// sanitized in every run: it reads what strangers wrote
#include "gradus/cluster/wire.hpp"

#include <cstring>
#include <fstream>
#include <sstream>

#include "../message.hpp"
#include "gradus/store/crc32c.hpp"

using namespace gradus;
using namespace gradus::detail;

namespace {
using octets = std::vector<std::byte>;

octets joined(std::span<const std::span<const std::byte>> pieces) {
  octets out;
  for (const auto p : pieces) out.insert(out.end(), p.begin(), p.end());
  return out;
}
template <class T>
void poke(octets& b, std::size_t at, T value) {
  std::memcpy(b.data() + at, &value, sizeof value);
}
template <class T>
T peek(const octets& b, std::size_t at) {
  T value;
  std::memcpy(&value, b.data() + at, sizeof value);
  return value;
}
// A forger knows the checksums.
octets sealed(octets b) {
  const auto all = std::span<const std::byte>(b);
  const std::size_t front = (64 + peek<std::uint32_t>(b, 48) + 63) / 64 * 64;
  if (front <= b.size()) {
    poke(b, 52, crc32c(all.subspan(front)));
    poke(b, 56, crc32c(all.subspan(64, front - 64)));
  }
  poke(b, 60, crc32c(all.first(60)));
  return b;
}
// The worked example of docs/formats/wire.md: worker 2 pushes the second half of "w" and one row of "emb".
constexpr float half_of_w[] = {1.0f, -2.0f};
constexpr std::int64_t row[] = {5};
constexpr float row_values[] = {0.5f, 0.25f, 4.0f};
constexpr message_head push_head{message_kind::push, 2, 7, 3, 41};
std::vector<wire_slice> example_slices() {
  return {{"w", float32, 2, std::as_bytes(std::span(half_of_w))},
          {"emb", int64, 0, std::as_bytes(std::span(row)), slice_role::rows},
          {"emb", float32, 0, std::as_bytes(std::span(row_values)), slice_role::values}};
}
octets example() {
  message_encoder out;
  return joined(out.encode(push_head, example_slices()));
}
std::string hex_dump(const octets& file) {
  std::string out;
  char piece[32];
  for (std::size_t at = 0; at < file.size(); at += 16) {
    std::snprintf(piece, sizeof piece, "%06zx ", at);
    out += piece;
    std::string shown;
    for (std::size_t i = at; i < at + 16 && i < file.size(); ++i) {
      const auto b = std::to_integer<unsigned>(file[i]);
      std::snprintf(piece, sizeof piece, " %02x", b);
      out += piece;
      b >= 0x20 && b < 0x7F ? shown += static_cast<char>(b) : shown += "·";
    }
    out += std::string(file.size() - at < 16 ? 3 * (16 - (file.size() - at)) : 0, ' ') + "  " + shown + "\n";
  }
  return out;
}
std::string refusal(const octets& b, status why = status::data_loss) {
  message_decoder in;
  return message_of(why, [&] { in.decode(b); });
}
// Offsets in the worked example.
constexpr std::size_t table = 64, second = table + 40, third = second + 40, payload = 192;
}  // namespace

TEST_CASE("the page's hex dump is what is sent") {
  std::ifstream page(GRADUS_SOURCE_DIR "/docs/formats/wire.md");
  REQUIRE(page.good());
  std::stringstream content;
  content << page.rdbuf();
  const auto dump = hex_dump(example());
  CHECK_MESSAGE(content.str().find(dump) != std::string::npos, "docs/formats/wire.md should hold\n" << dump);
}

TEST_CASE("what is sent comes back, and neither side copies a tensor") {
  message_encoder out;
  const auto slices = example_slices();
  const auto pieces = out.encode(push_head, slices);
  std::size_t shown = 0;
  for (const auto p : pieces)
    for (const auto& s : slices) shown += p.data() == s.bytes.data() && p.size() == s.bytes.size();
  CHECK(shown == 3);
  const octets frame = joined(pieces);
  CHECK(out.frame_bytes() == frame.size());
  message_decoder in;
  CHECK(in.frame_bytes(std::span(frame).first(64)) == frame.size());
  const decoded_message& m = in.decode(frame);
  CHECK(m.head == push_head);
  REQUIRE(m.slices.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const wire_slice &a = slices[i], &b = m.slices[i];
    CHECK((a.name == b.name && a.type == b.type && a.begin == b.begin && a.role == b.role && a.count() == b.count()));
    CHECK(std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0);
    CHECK(b.bytes.data() >= frame.data());
    CHECK(b.bytes.data() + b.bytes.size() <= frame.data() + frame.size());
    CHECK((b.bytes.data() - frame.data()) % 64 == 0);
  }
  // A message without slices is its head.
  const octets bare = joined(out.encode({message_kind::heartbeat, 1, 9}));
  CHECK(bare.size() == 64);
  CHECK(in.decode(bare).head == message_head{message_kind::heartbeat, 1, 9, 0, 0});
  CHECK(in.decode(bare).slices.empty());
  // Slices of no elements, names of every length around the padding.
  for (const std::string name : {"", "1234567", "12345678", "123456789"}) {
    const octets one = joined(out.encode(push_head, {{name, float64, 5, {}}}));
    REQUIRE(in.decode(one).slices.size() == 1);
    CHECK(in.decode(one).slices[0].name == name);
    CHECK(in.decode(one).slices[0].count() == 0);
  }
}

TEST_CASE("what is cut, lengthened or flipped is refused") {
  const octets whole = example();
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const octets cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    const std::string problem = refusal(cut);
    CHECK(problem.find(n < 64 ? text("its head has 64 bytes, and ", n, " came")
                              : text("its frame has ", whole.size(), " bytes, and ", n, " came")) != std::string::npos);
  }
  octets longer = whole;
  longer.push_back(std::byte{});
  CHECK(refusal(longer).find("came") != std::string::npos);
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    octets flipped = whole;
    flipped[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    message_decoder in;
    CHECK_THROWS_AS(in.decode(flipped), error);
  }
}

TEST_CASE("each forgery with checksums that fit is named") {
  const octets good = example();
  REQUIRE(sealed(good) == good);
  const auto with = [&](std::size_t at, auto value, status why = status::data_loss) {
    octets b = good;
    poke(b, at, value);
    return refusal(sealed(b), why);
  };
  const auto says = [](const std::string& problem, const char* words) {
    CHECK_MESSAGE(problem.find(words) != std::string::npos, problem);
  };
  says(with(0, 'X'), "does not begin with \"GRDW\"; is the peer a gradus?");
  says(with(4, std::uint16_t{2}, status::failed_precondition),
       "a message is of version 2 of the wire format, here it is version 1; run one build of gradus on all tasks");
  says(with(6, std::uint16_t{0}), "its kind is 0; expected 1 to 30");
  says(with(6, std::uint16_t{31}), "its kind is 31; expected 1 to 30");
  says(with(6, std::uint16_t{999}), "its kind is 999");
  says(with(12, std::uint32_t{1} << 31, status::resource_exhausted), "2147483648 slices, above the limit of 65536");
  says(with(12, std::uint32_t{4}), "its table of 4 slices has 120 bytes; expected a multiple of 8 from 128 to");
  says(with(12, std::uint32_t{2}), "its table has 40 bytes behind the last slice");
  says(with(40, std::uint64_t{1} << 40, status::resource_exhausted),
       "1099511627776 bytes behind its table, above the limit frame_bytes of 1073741824");
  says(with(40, ~std::uint64_t{0}, status::resource_exhausted), "18446744073709551615 bytes behind its table");
  says(with(48, std::uint32_t{121}), "a multiple of 8");
  says(with(third + 26, std::uint16_t{1000}), "slice 2 of 3 has a name that ends behind the table");
  says(with(table + 8, std::uint64_t{1} << 40),
       "slice 0 of 3 has 1099511627776 elements of float32, more than there are bytes for");
  says(with(table + 8, ~std::uint64_t{0}), "more than there are bytes for");
  says(with(table + 0, ~std::uint64_t{0}), "ends behind element 2^64 - 1");
  says(with(second + 16, std::uint64_t{0}), "slice 1 of 3 lies at byte 0; expected 64, behind the slice before it");
  says(with(second + 16, std::uint64_t{128}), "lies at byte 128; expected 64");
  says(with(table + 24, std::uint8_t{7}), "has the element type 7, which is none");
  says(with(table + 25, std::uint8_t{9}), "has the role 9; expected 0 to 3");
  says(with(table + 25, std::uint8_t{1}), "holds row numbers as float32; expected int64");
  says(with(table + 25, std::uint8_t{3}), "holds ids as float32; expected uint64");
  says(with(table + 26, std::uint16_t{2000}), "has a name of 2000 bytes, above the limit of 1024");
  says(with(table + 28, std::uint32_t{1}), "has other bytes than zeros where zeros are expected");
  says(with(table + 33, 'x'), "has other bytes than zeros where zeros are expected");
  says(with(table + 120, 'x'), "what fills its table up is not zero");
  says(with(payload + 8, 'x'), "slice 1 of 3 stands behind other bytes than zeros");
  says(with(third + 8, std::uint64_t{2}), "4 bytes stand behind the last slice");
  message_encoder out;
  const std::byte flags[] = {std::byte{1}, std::byte{2}};
  says(refusal(joined(out.encode(push_head, {{"b", boolean, 0, flags}}))),
       "is bool, and holds a byte that is neither 0 nor 1");
}

TEST_CASE("slices that share elements are refused, neighbours and other roles are not") {
  const auto sent = [&](std::uint64_t begin, std::string_view name, slice_role role) {
    message_encoder out;
    const std::int64_t two[] = {1, 2};
    const auto bytes = std::as_bytes(std::span(two));
    return joined(out.encode(push_head, {{"a", int64, 4, bytes}, {name, int64, begin, bytes, role}}));
  };
  CHECK(refusal(sent(5, "a", slice_role::dense)).find("slices of \"a\" overlap: elements 4 to 6 and 5 to 7") !=
        std::string::npos);
  CHECK(refusal(sent(3, "a", slice_role::dense)).find("overlap") != std::string::npos);
  CHECK(refusal(sent(4, "a", slice_role::dense)).find("overlap") != std::string::npos);
  CHECK(refusal(sent(6, "a", slice_role::dense)) == "no error");
  CHECK(refusal(sent(2, "a", slice_role::dense)) == "no error");
  CHECK(refusal(sent(5, "b", slice_role::dense)) == "no error");
  CHECK(refusal(sent(5, "a", slice_role::rows)) == "no error");
  message_encoder out;
  const octets types = joined(out.encode(push_head, {{"a", int64, 0, {}}, {"a", int32, 0, {}}}));
  CHECK(refusal(types) == "malformed message: slices of \"a\" are of int64 and of int32");
}

TEST_CASE("limits hold on both sides") {
  message_decoder in({.frame_bytes = 300, .slices = 2, .name_bytes = 2});
  const auto refused = [&](const octets& b, status why) { return message_of(why, [&] { in.decode(b); }); };
  CHECK(refused(example(), status::resource_exhausted).find("3 slices, above the limit of 2") != std::string::npos);
  message_encoder out;
  const std::vector<std::byte> many(400);
  CHECK(refused(joined(out.encode(push_head, {{"w", uint8, 0, many}})), status::resource_exhausted)
            .find("400 bytes behind its table, above the limit frame_bytes of 300") != std::string::npos);
  CHECK(refused(joined(out.encode(push_head, {{"abc", uint8, 0, {}}})), status::data_loss)
            .find("name of 3 bytes, above the limit of 2") != std::string::npos);
  message_encoder narrow({.frame_bytes = 300, .slices = 2, .name_bytes = 2});
  CHECK(message_of(status::resource_exhausted, [&] { narrow.encode(push_head, example_slices()); }) ==
        "a message of kind push cannot be sent: it has 3 slices, above the limit of 2");
  CHECK(message_of(status::resource_exhausted, [&] {
          narrow.encode(push_head, {{"w", uint8, 0, many}});
        }) == "a message of kind push cannot be sent: it has 528 bytes, above the limit frame_bytes of 300");
  CHECK(message_of(status::resource_exhausted, [&] {
          narrow.encode(push_head, {{"abc", uint8, 0, {}}});
        }) == "a message of kind push cannot be sent: a name has 3 bytes, above the limit of 2");
  CHECK(message_of(status::invalid_argument, [&] {
          out.encode(push_head, {{"w", float64, 0, many}, {"v", dtype::none, 0, many}});
        }) == "a message of kind push cannot be sent: the slice of \"v\" has the element type 0, which is none");
  CHECK(
      message_of(status::invalid_argument,
                 [&] {
                   out.encode(push_head, {{"w", float64, 0, std::span(many).first(12)}});
                 }) ==
      "a message of kind push cannot be sent: the slice of \"w\" has 12 bytes, which are no whole elements of float64");
}

TEST_CASE("every kind has the number and the name that the page gives it, and is sent") {
  std::ifstream page(GRADUS_SOURCE_DIR "/docs/formats/wire.md");
  std::stringstream words;
  words << page.rdbuf();
  const std::string text_of_page = words.str();
  CHECK(kind_name(static_cast<message_kind>(last_message_kind + 1)) == "none");
  for (std::uint16_t k = 1; k <= last_message_kind; ++k) {
    const auto kind = static_cast<message_kind>(k);
    const std::string said = text(k, " ", kind_name(kind), k == last_message_kind ? "." : ",");
    CHECK_MESSAGE(text_of_page.find(said) != std::string::npos, said);
    message_encoder out;
    octets frame;
    for (const auto piece : out.encode({.kind = kind})) frame.insert(frame.end(), piece.begin(), piece.end());
    message_decoder in;
    CHECK(in.decode(frame).head.kind == kind);
  }
}
