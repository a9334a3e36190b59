// The bodies of certificates.hpp.
#pragma once
#include "../base/body.hpp"
#include "../store/file.hpp"
#include "certificates.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY certificate_files read_certificates(const mtls& from) {
  constexpr std::uint64_t limit = 1 << 20;
  const bool named = !from.name.empty();
  const auto read = [&](const std::string& name, std::string_view what, std::string_view mark) {
    const std::string path = join_path(from.folder, name);
    std::vector<std::byte> bytes;
    if (const file_problem p = try_read({}, path, limit, bytes))
      raise(status_of_errno(p.error),
            text("mtls: ", what, " cannot be read: ", describe(p), ". The folder has to hold ca.pem, ",
                 named ? text(from.name, ".pem and ", from.name, ".key") : std::string("cert.pem and key.pem"),
                 ", all of them PEM. For a cluster whose network is trusted say insecure{} instead"));
    std::string all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (all.find(mark) == std::string::npos)
      raise(status::failed_precondition,
            text("mtls: ", path, " is to hold ", what, " and has no line with \"", mark, "\"; write it as PEM"));
    return all;
  };
  certificate_files f;
  f.authority = read("ca.pem", "the authority's certificate", "BEGIN CERTIFICATE-----");
  f.chain = read(named ? from.name + ".pem" : "cert.pem", "the certificate of this task", "BEGIN CERTIFICATE-----");
  f.key = read(named ? from.name + ".key" : "key.pem", "the private key of this task", "PRIVATE KEY-----");
  return f;
}

GRADUS_BODY std::string role_of(std::span<const std::string> uris) {
  constexpr std::string_view ours = "spiffe://gradus/";
  std::string role;
  for (const std::string& uri : uris) {
    if (!uri.starts_with(ours)) continue;
    const std::string said = uri.substr(ours.size());
    if (said.empty() || (!role.empty() && said != role)) return {};
    role = said;
  }
  return role;
}

}  // namespace gradus::detail
