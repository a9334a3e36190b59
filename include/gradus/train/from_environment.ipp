// The bodies of from_environment.hpp.
#pragma once
#include <cstdlib>

#include "../base/body.hpp"
#include "from_environment.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY int way_of_environment(std::initializer_list<cluster_way> ways, bool names_cluster) {
  std::string offered;
  for (const cluster_way& w : ways) offered += text(offered.empty() ? "" : ", ", w.protocol);
  const auto first = [&](auto fits) {
    int i = 0;
    for (const cluster_way& w : ways) {
      if (fits(w)) return i;
      ++i;
    }
    return -1;
  };
  const auto value = [](const char* name) {
    const char* const found = std::getenv(name);
    return std::string(found != nullptr ? found : "");
  };
  if (const std::string asked = value("GRADUS_CLUSTER"); !asked.empty()) {
    const int found = first([&](const cluster_way& w) { return w.protocol == asked; });
    if (found < 0 && asked != "alone")
      raise(status::not_found, text("GRADUS_CLUSTER is \"", asked, "\", and this program offers ", offered,
                                    "; set it to one of these or to \"alone\", or unset it"));
    return found;
  }
  // These variables are set for each process by Open MPI, by MPICH and its derivatives, and by a launcher with PMIx.
  for (const char* rank : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"})
    if (const int mpi = first([](const cluster_way& w) { return w.protocol == "mpi"; });
        mpi >= 0 && !value(rank).empty())
      return mpi;
  if (names_cluster) {
    const int transport = first([](const cluster_way& w) { return w.is_transport; });
    if (transport < 0)
      raise(status::not_found, text("TF_CONFIG names a cluster of processes, and this program offers ", offered,
                                    "; give from_environment a transport such as gradus::grpc{}, or unset TF_CONFIG"));
    return transport;
  }
  return first([](const cluster_way& w) { return !w.is_transport && w.protocol != "mpi"; });
}

}  // namespace gradus::inline GRADUS_BUILD::detail
