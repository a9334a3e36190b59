// These policies decide which peers may connect: certificates in a folder, or no check.
//
//   gradus::mtls{"certs"}              ca.pem, cert.pem and key.pem of this folder
//   gradus::mtls{"certs", "worker"}    ca.pem, worker.pem and worker.key, where one folder holds those of all
//   gradus::insecure{}                 nothing is encrypted or verified, on any address, as its name says
//
// A certificate has its role in a URI among its alternative names: spiffe://gradus/worker, and likewise for chief, ps
// and evaluator.
#pragma once
#include "../base/build.hpp"

#include <span>
#include <string>
#include <string_view>

#include "../base/error.hpp"

namespace gradus::inline GRADUS_BUILD {

// Both sides show a certificate that the same authority has signed.
struct mtls {
  std::string folder;
  std::string name = {};           // the files are name.pem and name.key; empty: cert.pem and key.pem
  std::string server_role = "ps";  // the required role in the certificate of a task that we connect to; empty: any
  std::string server_name = {};    // the host that its certificate is made for, if not the one in the address
};
struct insecure {};

namespace detail {

struct certificate_files {
  std::string authority, chain, key;  // what is in the files
};
// Raises not_found for a file that is missing, failed_precondition for one that is no PEM; both name the remedy.
certificate_files read_certificates(const mtls& from);

// Returns the role in one of these URIs; empty if none has a role, or two have different ones.
std::string role_of(std::span<const std::string> uris);

}  // namespace detail
}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "certificates.ipp"
#endif
