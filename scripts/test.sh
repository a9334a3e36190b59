#!/usr/bin/env bash
# Installs what is missing, builds, runs the tests, prints ctest's closing lines of every configuration.
#
#   scripts/test.sh            g++: a fifth of the files of a room, a tenth in the largest ones, drawn by the commit; a
#                              smaller sample with clang 16 under ASan + UBSan, and under TSan of those in which threads begin
#   scripts/test.sh --quick    the same with g++, nothing else
#   scripts/test.sh --all      the same without samples, then: what users' options make of five rooms (-O2 -march=native), clang 16
#                              whole, its kernels under ASan with this machine's registers, clang 19 edge core, SSE2-only and AVX2 builds, four rooms on 64-bit and 32-bit ARM,
#                              RISC-V and IBM Z under qemu and on 32-bit x86, LLVM's standard library; clang 19 whole (newest, libc++-19) if GRADUS_NEWEST names a folder into which xtl,
#                              xtensor, xsimd, cereal and doctest were installed, newer than the system's; and the steps
#                                long          thousands of samples where the default takes dozens: kill sweeps and others
#                                threads       the tests of TSan 50 times each
#                                mutants       every small fault of tests/mutants/
#                                compile_cost  what a user's model costs to compile
#   scripts/test.sh NAME...    these presets (cmake --list-presets) and steps only, in this order; with --all too without
#                              samples, so that --all may be run in pieces. The steps and tsan read what a preset has
#                              built: g++ before long, mutants and tsan, tsan before threads.
#
# Options: --no-install skips the packages.   GRADUS_BUILD=DIR builds there instead of build/.
# Everything is run even if something before it failed; the exit code is 0 only if all passed.
set -uo pipefail
cd "$(dirname "$0")/.."
build=${GRADUS_BUILD:-build}
jobs=${GRADUS_JOBS:-$(nproc)}
install=yes all="" steps=()
for option in "$@"; do
  case $option in
    --quick) steps=(g++) ;;
    --all) all=yes ;;
    --no-install) install=no ;;
    -h | --help) sed -n '2,21s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "test.sh: unknown option $option (--quick, --all, --no-install)" >&2; exit 2 ;;
    *) steps+=("$option") ;;
  esac
done
drawn=ON whole=(g++ asan tsan)
if [ -n "$all" ]; then
  drawn=OFF whole+=(asan-native optimized clang-16 clang-19 newest libc++-16 libc++-19 sse2 avx2 aarch64 armhf riscv64 s390x i686 long threads mutants compile_cost)
fi
[ ${#steps[@]} -gt 0 ] || steps=("${whole[@]}")

if [ $install = yes ]; then
  case " ${steps[*]} " in *"-19 "* | *" newest "*) all=yes ;; esac
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

run_preset() {
  local preset=$1 dir=$build/$1 built=yes passed run=()
  local options=("-DGRADUS_DRAWN=${drawn}") # a sample by the commit, or with --all everything
  # The tests of which g++ has seen that a thread begins in them.
  if [ "$preset" = tsan ] && [ -d "$build/g++/threads" ]; then
    options+=("-DGRADUS_THREADED_TESTS=$(cd "$build/g++/threads" && pwd)")
  fi
  if cmake --preset "$preset" -B "$dir" "${options[@]}" >"$report/configure" 2>&1 || { cat "$report/configure"; false; }; then
    # Keep going: one broken file should not hide the others, and what was built is still tested.
    cmake --build "$dir" -j "$jobs" -- -k 0 >"$report/build" 2>&1 || built=no
    [ $built = yes ] || grep -vE '^\[[0-9]+/[0-9]+\] (Building|Linking|Running)' "$report/build"
    case $preset in asan* | tsan) run=("${plainly[@]}") ;; esac
    TSAN_OPTIONS=halt_on_error=1 "${run[@]}" ctest --test-dir "$dir" -j "$jobs" --output-on-failure --no-tests=error 2>&1 |
      tee "$report/$preset"
    passed=${PIPESTATUS[0]}
    finish "$preset" $((SECONDS - started))
    if [ $built = no ]; then echo "the build failed" >>"$report/summary"; fi
    { [ "$passed" -eq 0 ] && [ $built = yes ]; } || failed+=("$preset")
  else
    echo "=== $preset: configuration failed" >>"$report/summary"
    failed+=("$preset")
  fi
}

# What clang 19 needs besides: newer libraries than the system's, for libc++ the unpacked packages.
run_with_newest() {
  if [ -z "${GRADUS_NEWEST:-}" ]; then
    echo "=== $1: skipped, GRADUS_NEWEST names no folder of libraries" | tee -a "$report/summary"
    return
  fi
  if [ "$1" = libc++-19 ] && [ -z "${GRADUS_LIBCXX:-}" ]; then
    scripts/deps.sh --libc++ 19 "$build/libc++" || { failed+=("$1"); return; }
    GRADUS_LIBCXX=$(cd "$build/libc++" && pwd)/usr/lib/llvm-19
    export GRADUS_LIBCXX
  fi
  run_preset "$1"
}

run_ctest() { # name, what runs ctest
  "${@:2}" 2>&1 | tee "$report/$1"
  [ "${PIPESTATUS[0]}" -eq 0 ] || failed+=("$1")
  finish "$1" $((SECONDS - started))
}

run_tool() { # name, command
  local lines
  "${@:2}" 2>&1 | tee "$report/$1"
  [ "${PIPESTATUS[0]}" -eq 0 ] || failed+=("$1")
  lines=$(tail -1 "$report/$1")
  echo "=== $1 ($((SECONDS - started)) s) $lines" >>"$report/summary"
}

for step in "${steps[@]}"; do
  started=$SECONDS
  echo "=== $step"
  case $step in
    long) # tests read GRADUS_LONG and then take thousands of samples where they take dozens otherwise
      GRADUS_LONG=1 run_ctest long ctest --test-dir "$build/g++" -L long --output-on-failure --no-tests=error --timeout 3600 ;;
    threads)
      TSAN_OPTIONS=halt_on_error=1 run_ctest threads "${plainly[@]}" ctest --test-dir "$build/tsan" -j "$jobs" \
        --output-on-failure --no-tests=error --repeat until-fail:50 --timeout 7200 ;;
    mutants) run_tool mutants tools/mutants --build "$build/g++" --baseline --jobs "$jobs" --seconds ;;
    compile_cost) run_tool compile_cost tools/compile_cost --check ;;
    newest | libc++-19) run_with_newest "$step" ;;
    *) run_preset "$step" ;;
  esac
done

echo
echo "--- $(date -u +%F) on $(uname -m), $(nproc) processors, $SECONDS s in all"
cat "$report/summary"
if [ ${#failed[@]} -gt 0 ]; then
  echo "FAILED: ${failed[*]}"
  exit 1
fi
