// expect: was given without the cluster; add gradus::connected{server}.
// at most: 60 lines
#include <gradus/cluster/staleness.hpp>
#include <gradus/gradus.hpp>
#include <gradus/run/optimizer.hpp>

int main() {
#ifdef FIX
  gradus::optimizer opt{gradus::adam{}};
#else
  gradus::optimizer opt{gradus::adam{}, gradus::sync_replicas{}};
#endif
}
