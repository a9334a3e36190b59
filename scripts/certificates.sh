#!/usr/bin/env bash
# Makes certificates for a cluster, of an authority of its own: a folder for gradus::mtls{"FOLDER", "ROLE"}.
#   scripts/certificates.sh FOLDER [HOST...]
# ca.pem, and for each role (ps, chief, worker, evaluator) ROLE.pem and ROLE.key, good for a year. Those of parameter
# servers are for these hosts, names or IP addresses; localhost and 127.0.0.1 are always among them. ca.key signs: keep it
# where no task runs. Existing files stay as they are.
set -euo pipefail
if [ $# -eq 0 ] || [ "$1" = --help ]; then
  sed -n '2,6s/^# \{0,1\}//p' "$0"
  [ $# -gt 0 ] && exit 0 || exit 2
fi
folder=$1
shift
mkdir -p "$folder"
cd "$folder"
umask 077
hosts=DNS:localhost,IP:127.0.0.1
for host in "$@"; do
  case $host in
    *[!0-9.]*) hosts+=,DNS:$host ;;
    *) hosts+=,IP:$host ;;
  esac
done
[ -e ca.pem ] || openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 -subj "/CN=gradus" \
  -addext basicConstraints=critical,CA:TRUE -keyout ca.key -out ca.pem 2>/dev/null
for role in ps chief worker evaluator; do
  [ -e $role.pem ] && continue
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$role" -keyout $role.key \
    -out $role.csr 2>/dev/null
  openssl x509 -req -in $role.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 365 -out $role.pem.new \
    -extfile <(echo "subjectAltName=URI:spiffe://gradus/$role,$hosts") 2>/dev/null
  mv $role.pem.new $role.pem
  rm $role.csr
done
