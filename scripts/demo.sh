#!/usr/bin/env bash
# Installs what is missing, builds examples/digits, trains, and says where the results are.
#   scripts/demo.sh [OPTIONS OF THE EXAMPLE]      for instance --fresh, --data DIR, --help
# Run it again and it goes on from the last checkpoint; kill it at any moment and the same holds.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=${GRADUS_BUILD:-$root/build}/demo
"$root/scripts/deps.sh" --demo
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "demo.sh: building"
{
  cmake -S "$root" -B "$build" -G Ninja -DGRADUS_BUILD_TESTS=OFF -DGRADUS_BUILD_BENCHMARKS=OFF \
    "-DGRADUS_DEVELOPMENT_OPTIONS=-O3;-march=native" && cmake --build "$build" --target digits
} >"$log" 2>&1 || { cat "$log"; echo "demo.sh: the build failed, see above" >&2; exit 1; }

case " $* " in
  *" --help "* | *" -h "*) exec "$build/bin/digits" "$@" ;;
esac
# The example prints where its results are, since --model-dir can move them.
"$build/bin/digits" "$@"
echo
echo "The same command continues from the last checkpoint; add --fresh to start over. The curves:"
echo "  tensorboard --logdir runs"
