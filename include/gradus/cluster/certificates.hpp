// These policies decide which peers may connect: certificates in a folder, or no check.
//
//   gradus::mtls{"certs"}              ca.pem, cert.pem and key.pem of this folder
//   gradus::mtls{"certs", "worker"}    ca.pem, worker.pem and worker.key, where one folder holds those of all
//   gradus::insecure{}                 nothing is encrypted or verified, on any address, as its name says
//
// A certificate says its role by a URI among its alternative names: spiffe://gradus/worker, and so chief, ps,
// evaluator.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "../base/error.hpp"

namespace gradus::inline GRADUS_BUILD {

// Both sides show a certificate that one authority has signed.
struct mtls {
  std::string folder;
  std::string name = {};           // the files are name.pem and name.key; empty: cert.pem and key.pem
  std::string server_role = "ps";  // the required role in the certificate of a task that we connect to; empty: any
  std::string server_name = {};    // the host that it has to be made for, where that is not the one in the address
};
struct insecure {};

namespace detail {

struct certificate_files {
  std::string authority, chain, key;  // what is in the files
};
// Raises not_found for a file that is missing, failed_precondition for one that is no PEM; both name the remedy.
certificate_files read_certificates(const mtls& from);

// Returns the role that one of these URIs says; empty if none does, or two say different ones.
std::string role_of(std::span<const std::string> uris);

}  // namespace detail
}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "certificates.ipp"
#endif
