// expect: gradus: a session's train op takes asynchronous, ssp or sync_replicas; train with all_reduce{} by a trainer
// at most: 60 lines
#include <gradus/cluster/all_reduce.hpp>
#include <gradus/cluster/connected.hpp>
#include <gradus/gradus.hpp>
#include <gradus/run/optimizer.hpp>

int main() {
  const gradus::server here(gradus::server::local_def());
#ifdef FIX
  gradus::optimizer opt{gradus::connected{here}, gradus::sync_replicas{}, gradus::adam{}};
#else
  gradus::optimizer opt{gradus::connected{here}, gradus::all_reduce{}, gradus::adam{}};
#endif
}
