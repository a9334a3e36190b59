#include <gradus/store/npy.hpp>

#include <doctest/doctest.h>

using namespace gradus;

namespace {

std::string npy_of(std::string header, std::string_view values, char major = 1) {
  header += '\n';
  std::string out("\x93NUMPY", 6);
  out += major, out += '\0';
  out += static_cast<char>(header.size()), out += '\0';
  if (major > 1) out += '\0', out += '\0';
  return out + header + std::string(values);
}
std::string parsed(const std::string& file, detail::npy_array& a, status& kind) {
  return detail::parse_npy(std::as_bytes(std::span(file.data(), file.size())), a, kind);
}

}  // namespace

// More of it, on archives by NumPy, in tests/codec/npz.cpp.
TEST_CASE("headers as NumPy and others write them") {
  for (const char major : {'\1', '\2', '\3'})
    for (const char* header : {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }",
                               "{\"shape\":(2,3,),\"fortran_order\":True,\"descr\":\"<f4\"}",
                               "{'descr': '<f4', 'fortran_order': True, 'shape': (2L, 3L), }   "}) {
      const std::string file = npy_of(header, "values", major);
      detail::npy_array a;
      status kind{};
      CHECK(parsed(file, a, kind) == "");
      CHECK(a.type == "<f4");
      CHECK(a.fortran);
      CHECK(a.dims == extents{2, 3});
      CHECK(a.bytes.size() == 6);
    }
}

TEST_CASE("what is written is read, and the values begin at a multiple of 64") {
  for (const extents& dims : {extents{}, extents{5}, extents{2, 0, 3}}) {
    const std::string head = detail::npy_head("<i8", dims);
    CHECK(head.size() % 64 == 0);
    detail::npy_array a;
    status kind{};
    CHECK(parsed(head, a, kind) == "");
    CHECK((a.type == "<i8" && a.dims == dims && !a.fortran && a.bytes.empty()));
  }
}

TEST_CASE("what is refused") {
  const auto why = [](const std::string& file, status expected) {
    detail::npy_array a;
    status kind{};
    const auto found = parsed(file, a, kind);
    CHECK(kind == expected);
    return found;
  };
  const auto header = [&](const char* h) { return why(npy_of(h, ""), status::data_loss); };
  CHECK(why("\x93NUMPX\1\0\1\0{", status::data_loss) == "it does not begin as a .npy file does");
  CHECK(why(npy_of("{}", "", 4), status::failed_precondition).find(".npy version 4.0") != std::string::npos);
  CHECK(header("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), 'x': 1}").find("'x'") != std::string::npos);
  CHECK(header("{'descr': '<f4', 'descr': '<f4'}").find("twice") != std::string::npos);
  CHECK(header("{'descr': '<f4', 'fortran_order': 1, 'shape': (2,)}").find("neither True nor False") !=
        std::string::npos);
  CHECK(header("{'descr': '<f4', 'fortran_order': True, 'shape': (-2,)}").find("its shape is no tuple") == 0);
  CHECK(header("{'descr': '<f4', 'fortran_order': True, 'shape': (2)}").find("its shape is no tuple") == 0);
  CHECK(header("{'descr': '<f4', 'shape': (2,)}").find("lacks one of") != std::string::npos);
  CHECK(header("{'descr': [('a', '<f4'), }").find("no text and no list") != std::string::npos);
}
