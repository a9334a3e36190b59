#!/usr/bin/env bash
# Installs what is missing, builds, runs the tests, prints ctest's closing lines of every configuration.
#
#   scripts/test.sh            g++ whole; clang 16 under ASan + UBSan whole; TSan on the rooms that use threads
#   scripts/test.sh --quick    g++ whole, nothing else
#   scripts/test.sh --all      the default, then: clang 16 whole, clang 19 edge core, SSE2-only and AVX2 builds,
#                              64-bit ARM under qemu, long kill sweeps, compile cost
#   scripts/test.sh NAME...    these presets only (cmake --list-presets)
#
# Options: --no-install skips the packages.   GRADUS_BUILD=DIR builds there instead of build/.
# Every configuration is run even if one before it failed; the exit code is 0 only if all passed.
set -uo pipefail
cd "$(dirname "$0")/.."
build=${GRADUS_BUILD:-build}
jobs=${GRADUS_JOBS:-$(nproc)}
install=yes all="" presets=()
for option in "$@"; do
  case $option in
    --quick) presets=(g++) ;;
    --all) all=yes ;;
    --no-install) install=no ;;
    -h | --help) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "test.sh: unknown option $option (--quick, --all, --no-install)" >&2; exit 2 ;;
    *) presets+=("$option") ;;
  esac
done
[ ${#presets[@]} -gt 0 ] || presets=(g++ asan tsan)
[ -z "$all" ] || presets=(g++ asan tsan clang-16 clang-19 sse2 avx2 aarch64)

if [ $install = yes ]; then
  scripts/deps.sh ${all:+--all} || exit 1
fi

# clang 16's sanitizers fail at start-up where the kernel randomizes addresses by more bits than they know of.
plainly=()
if command -v setarch >/dev/null && setarch "$(uname -m)" -R true 2>/dev/null; then plainly=(setarch "$(uname -m)" -R); fi

report=$(mktemp -d)
trap 'rm -rf "$report"' EXIT
failed=()
finish() { # name, seconds; the closing lines of $report/name
  echo "=== $1 ($2 s)" >>"$report/summary"
  sed -n '/tests passed/,$p' "$report/$1" | grep -vE '^$|Label Time|sec\*proc' >>"$report/summary" || true
}

for preset in "${presets[@]}"; do
  started=$SECONDS
  echo "=== $preset"
  dir=$build/$preset
  if cmake --preset "$preset" -B "$dir" >"$report/configure" 2>&1 || { cat "$report/configure"; false; }; then
    built=yes
    # Keep going: one broken file should not hide the others, and what was built is still tested.
    cmake --build "$dir" -j "$jobs" -- -k 0 >"$report/build" 2>&1 || built=no
    [ $built = yes ] || grep -vE '^\[[0-9]+/[0-9]+\] (Building|Linking|Running)' "$report/build"
    labels=()
    [ "$preset" != tsan ] || labels=(-L threads)
    run=()
    case $preset in asan | tsan) run=("${plainly[@]}") ;; esac
    TSAN_OPTIONS=halt_on_error=1 "${run[@]}" ctest --test-dir "$dir" -j "$jobs" --output-on-failure --no-tests=error \
      "${labels[@]}" 2>&1 | tee "$report/$preset"
    passed=${PIPESTATUS[0]}
    finish "$preset" $((SECONDS - started))
    if [ $built = no ]; then echo "the build failed" >>"$report/summary"; fi
    { [ "$passed" -eq 0 ] && [ $built = yes ]; } || failed+=("$preset")
  else
    echo "=== $preset: configuration failed" >>"$report/summary"
    failed+=("$preset")
  fi
done

if [ -n "$all" ]; then
  # Tests read GRADUS_LONG and then take thousands of samples where they take dozens otherwise.
  started=$SECONDS
  echo "=== long"
  GRADUS_LONG=1 ctest --test-dir "$build/g++" -L long --output-on-failure --timeout 3600 2>&1 | tee "$report/long"
  [ "${PIPESTATUS[0]}" -eq 0 ] || failed+=(long)
  finish long $((SECONDS - started))
  echo "=== compile cost"
  tools/compile_cost --check || failed+=(compile_cost)
fi

echo
echo "--- $(date -u +%F) on $(uname -m), $(nproc) processors, $SECONDS s in all"
cat "$report/summary"
if [ ${#failed[@]} -gt 0 ]; then
  echo "FAILED: ${failed[*]}"
  exit 1
fi
