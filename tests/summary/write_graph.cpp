#include <gradus/summary/write_graph.hpp>

#include <doctest/doctest.h>

#include <gradus/testing/temp_dir.hpp>

using namespace gradus;

TEST_CASE("write_graph: text and bytes, into a directory that it makes") {
  const testing::temp_dir dir;
  graph_def g;
  g.nodes = {{"x", "Placeholder", {}, "", {{"dtype", dtype::float32}, {"shape", shape_def{{-1, 3}}}}}};
  g.min_consumer = 0;
  const std::string logdir = join_path(dir.path(), "a/b");
  CHECK(write_graph(g, logdir, "graph.pbtxt") == logdir + "/graph.pbtxt");
  const auto as_text = read_file(posix{}, logdir + "/graph.pbtxt");
  CHECK(std::string_view(reinterpret_cast<const char*>(as_text.data()), as_text.size()) == to_pbtxt(g));

  // The bytes of one Placeholder "x" [-1, 3], as TensorFlow 1.15 writes them.
  const unsigned char expected[] = {0x0a, 0x3b, 0x0a, 0x01, 0x78, 0x12, 0x0b, 0x50, 0x6c, 0x61, 0x63, 0x65, 0x68, 0x6f,
                                    0x6c, 0x64, 0x65, 0x72, 0x2a, 0x0b, 0x0a, 0x05, 0x64, 0x74, 0x79, 0x70, 0x65, 0x12,
                                    0x02, 0x30, 0x01, 0x2a, 0x1c, 0x0a, 0x05, 0x73, 0x68, 0x61, 0x70, 0x65, 0x12, 0x13,
                                    0x3a, 0x11, 0x12, 0x0b, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                    0x01, 0x12, 0x02, 0x08, 0x03, 0x22, 0x03, 0x08, 0x86, 0x01};
  const auto path = write_graph(g, logdir, "graph.pb", false);
  const auto bytes = read_file(posix{}, path);
  REQUIRE(bytes.size() == sizeof expected);
  for (std::size_t i = 0; i < bytes.size(); ++i) REQUIRE(bytes[i] == std::byte{expected[i]});

  g.nodes.push_back(g.nodes[0]);
  write_graph(g, logdir, "graph.pb", false);  // replaced, and nothing else left in the directory
  std::vector<std::string> names;
  REQUIRE(posix{}.list(logdir, names) == 0);
  CHECK(names.size() == 2);
  CHECK_THROWS_AS(write_graph(g, logdir, "../x"), invalid_argument);
  CHECK_THROWS_AS(write_graph(g, logdir, ""), invalid_argument);
  CHECK_THROWS_AS(write_graph(g, "/proc/none", "x"), std::exception);
}
