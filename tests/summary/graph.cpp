#include <gradus/summary/graph.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace gradus;

TEST_CASE("a graph as GraphDef text") {
  graph g;
  const value x = g.placeholder("x", {batch, 3});
  const value w = g.variable("w", {3}, {.init = zeros});
  {
    const auto scope = g.name_scope("s");
    const auto device = g.device("/job:ps/task:0");
    g.constant({1, 2}, {2}, int32);
    g.constant(0.25, float64, {batch});
  }
  g.group({x, w}, "both");
  CHECK(to_pbtxt(to_graph_def(g)) == R"(node {
  name: "x"
  op: "Placeholder"
  attr {
    key: "_output_shapes"
    value {
      list {
        shape {
          dim {
            size: -1
          }
          dim {
            size: 3
          }
        }
      }
    }
  }
  attr {
    key: "dtype"
    value {
      type: DT_FLOAT
    }
  }
  attr {
    key: "shape"
    value {
      shape {
        dim {
          size: -1
        }
        dim {
          size: 3
        }
      }
    }
  }
}
node {
  name: "w"
  op: "VariableV2"
  attr {
    key: "_output_shapes"
    value {
      list {
        shape {
          dim {
            size: 3
          }
        }
      }
    }
  }
  attr {
    key: "container"
    value {
      s: ""
    }
  }
  attr {
    key: "dtype"
    value {
      type: DT_FLOAT
    }
  }
  attr {
    key: "shape"
    value {
      shape {
        dim {
          size: 3
        }
      }
    }
  }
  attr {
    key: "shared_name"
    value {
      s: ""
    }
  }
}
node {
  name: "s/Const"
  op: "Const"
  device: "/job:ps/task:0"
  attr {
    key: "_output_shapes"
    value {
      list {
        shape {
          dim {
            size: 2
          }
        }
      }
    }
  }
  attr {
    key: "dtype"
    value {
      type: DT_INT32
    }
  }
  attr {
    key: "value"
    value {
      tensor {
        dtype: DT_INT32
        tensor_shape {
          dim {
            size: 2
          }
        }
        tensor_content: "\001\000\000\000\002\000\000\000"
      }
    }
  }
}
node {
  name: "s/Const_1"
  op: "Const"
  device: "/job:ps/task:0"
  attr {
    key: "_output_shapes"
    value {
      list {
        shape {
          dim {
            size: -1
          }
        }
      }
    }
  }
  attr {
    key: "dtype"
    value {
      type: DT_DOUBLE
    }
  }
  attr {
    key: "value"
    value {
      tensor {
        dtype: DT_DOUBLE
        tensor_shape {
        }
        double_val: 0.25
      }
    }
  }
}
node {
  name: "both"
  op: "NoOp"
  input: "^x"
  input: "^w"
}
versions {
  producer: 134
  min_consumer: 12
}
)");
}

TEST_CASE("other ops say the type they compute in") {
  static constexpr card same{
      .name = "Same", .operands = 1, .infer = [](inference& r) { r.type = r.in_type(0), r.dims = r.in(0); }};
  graph g;
  g.add(same, {g.placeholder("x", {2}, int64)});
  const graph_def d = to_graph_def(g);
  REQUIRE(d.nodes.size() == 2);
  CHECK(d.nodes[1].name == "Same");
  CHECK(d.nodes[1].inputs == std::vector<std::string>{"x"});
  CHECK(d.nodes[1].attrs[0].key == "T");
  CHECK(d.nodes[1].attrs[0].value.get<dtype>() == int64);
  std::vector<std::byte> bytes;
  encode_graph_def(bytes, d);
  CHECK(!bytes.empty());
}
