#!/usr/bin/env bash
# Installs what a build needs and this machine lacks (Debian 12 and its relatives).
#   scripts/deps.sh [--all] [--demo]
#   scripts/deps.sh --libc++ VERSION FOLDER
# --demo: only what scripts/demo.sh needs      --all: also what scripts/test.sh --all needs
# --libc++: unpacks LLVM's standard library of that version in FOLDER and installs nothing, since two do not go together
set -euo pipefail

build=(g++ cmake ninja-build ccache zlib1g-dev libxtensor-dev libxsimd-dev libcereal-dev libprotozero-dev
  nlohmann-json3-dev libcli11-dev libstb-dev)
test=(python3 python3-numpy python3-protobuf libleveldb-dev libgrpc++-dev libopenmpi-dev openmpi-bin openssl doctest-dev pkg-config clang-16 libclang-rt-16-dev libc++-16-dev libc++abi-16-dev clang-format-16
  strace util-linux
  libbenchmark-dev gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib gcc-riscv64-unknown-elf qemu-system-arm qemu-system-misc
  qemu-user g++-aarch64-linux-gnu g++-arm-linux-gnueabihf g++-riscv64-linux-gnu g++-s390x-linux-gnu g++-i686-linux-gnu)
longer=(clang-19 lintian mkdocs doxygen libdnnl-dev libopenblas-dev)

if [ "${1:-}" = --libc++ ] && [ $# -eq 3 ]; then
  mkdir -p "$3"
  cd "$3"
  apt-get download -qq "libc++-$2-dev" "libc++1-$2" "libc++abi-$2-dev" "libc++abi1-$2" "libunwind-$2"
  for package in *.deb; do dpkg -x "$package" .; done
  exit 0
fi

wanted=("${build[@]}" "${test[@]}")
for option in "$@"; do
  case $option in
    --demo) wanted=("${build[@]}") ;;
    --all) wanted=("${build[@]}" "${test[@]}" "${longer[@]}") ;;
    *) echo "deps.sh: unknown option $option (there are --demo, --all and --libc++)" >&2; exit 2 ;;
  esac
done

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "deps.sh: this system has no apt. Install what it calls these Debian packages, then build with CMake as usual:" >&2
  printf '  %s\n' "${wanted[@]}" >&2
  exit 1
fi

missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "deps.sh: everything is here (${#wanted[@]} packages)"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "deps.sh: not root and no sudo. Ask an administrator for: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "deps.sh: installing ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
