// 1000 nodes.
// at most: 10 seconds
#include "residual.hpp"

static_assert(graph_nodes<49> >= 1000);
int main() { return train<residual<49>>(); }
