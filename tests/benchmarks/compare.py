#!/usr/bin/env python3
"""compare.py COMPARE: benchmarks/compare with programs that print invented results.

It names the processor's core, leaves no peer out unless --without names it, fails if a peer does, and records the peak
and the bandwidth of the minute beside each row."""
import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile

compare = os.path.abspath(sys.argv[1])
peers = ("bench_dlib", "bench_eigen", "bench_io", "bench_torch", "bench_xsimd", "ceiling", "gemm_eigen", "gemm_onednn", "gemm_openblas")

# vendor, family, model, flags; the core, the vectors, the core for OpenBLAS. Families and models: AMD's and Intel's
# revision guides, as Linux prints them in /proc/cpuinfo.
avx512 = "sse2 avx2 avx512f avx512bw"
machines = [
    ("AuthenticAMD", 23, 0x31, "sse2 avx2", "Zen 2", "AVX2, 256 bits", "ZEN"),  # EPYC 7002
    ("AuthenticAMD", 25, 0x01, "sse2 avx2", "Zen 3", "AVX2, 256 bits", "ZEN"),  # EPYC 7003
    ("AuthenticAMD", 25, 0x21, "sse2 avx2", "Zen 3", "AVX2, 256 bits", "ZEN"),  # Ryzen 5000
    ("AuthenticAMD", 25, 0x11, avx512 + " avx512_bf16", "Zen 4", "AVX-512, 512 bits", "COOPERLAKE"),  # EPYC 9004
    ("AuthenticAMD", 25, 0x61, avx512 + " avx512_bf16", "Zen 4", "AVX-512, 512 bits", "COOPERLAKE"),  # Ryzen 7000
    ("AuthenticAMD", 25, 0xa0, avx512 + " avx512_bf16", "Zen 4", "AVX-512, 512 bits", "COOPERLAKE"),  # EPYC 9704
    ("AuthenticAMD", 26, 0x02, avx512 + " avx512_bf16", "Zen 5", "AVX-512, 512 bits", "COOPERLAKE"),  # EPYC 9005
    ("AuthenticAMD", 26, 0x44, avx512 + " avx512_bf16", "Zen 5", "AVX-512, 512 bits", "COOPERLAKE"),  # Ryzen 9000
    ("GenuineIntel", 6, 63, "sse2 avx2", "Haswell", "AVX2, 256 bits", "HASWELL"),
    ("GenuineIntel", 6, 85, avx512, "Skylake-SP or Cascade Lake", "AVX-512, 512 bits", "SKYLAKEX"),
    ("GenuineIntel", 6, 106, avx512, "Ice Lake-SP", "AVX-512, 512 bits", "SKYLAKEX"),
    ("GenuineIntel", 6, 143, avx512 + " avx512_bf16", "Sapphire Rapids", "AVX-512, 512 bits", "SKYLAKEX"),
    ("GenuineIntel", 6, 183, "sse2 avx2", "Raptor Lake", "AVX2, 256 bits", "HASWELL"),
    ("AuthenticAMD", 99, 1, "sse2 avx2", "a core without a name here", "AVX2, 256 bits", "ZEN"),
    ("GenuineIntel", 15, 63, "sse2", "a core without a name here", "SSE2, 128 bits", None),
]

wrong = []


def check(right, what, done=None):
    if not right:
        wrong.append(what + (f"\n  exit {done.returncode}\n{done.stdout}{done.stderr}" if done else ""))


def program(path, lines):
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + lines)
    os.chmod(path, 0o755)


def benchmark(path, rows):
    """A Google Benchmark program that writes these rows, and each start into `started`."""
    content = json.dumps({"benchmarks": rows})
    program(path, f"""echo "$0" >> '{os.path.dirname(path)}/../started'
for x in "$@"; do case "$x" in
  --benchmark_list_tests) echo '{rows[0]["name"]}'; exit;;
  --benchmark_out=*) echo '{content}' > "${{x#*=}}";;
esac; done
""")


def peer(path, value, after=""):
    row = json.dumps({"peer": os.path.basename(path), "workload": "W3a", "metric": "step_time", "value": value, "unit": "us",
                      "threads": 1, "spread": 0, "reps": 3})
    program(path, f"echo \"$0\" >> '{os.path.dirname(path)}/../started'\necho 'a line that is no result'\necho '{row}'\n{after}")


def cpuinfo(path, vendor, family, model, flags):
    with open(path, "w", encoding="utf-8") as file:
        for number in range(2):
            file.write(f"processor\t: {number}\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\n"
                       f"model name\t: Invented 1000\nstepping\t: 1\nflags\t\t: fpu {flags}\n\n")


with tempfile.TemporaryDirectory() as here:
    at = lambda *names: os.path.join(here, *names)  # noqa: E731
    os.makedirs(at("ours"))
    os.makedirs(at("peers"))
    timed = {"run_name": "W3a/real_time", "run_type": "iteration", "threads": 1, "iterations": 5, "real_time": 20.0,
             "cpu_time": 20.0, "time_unit": "us"}
    benchmark(at("ours", "bench_all"), [{**timed, "name": "W3a/real_time"}])
    benchmark(at("ours", "bench_peak"), [{"name": "peak/fma", "gflops": 123.0}, {"name": "peak/bandwidth", "effective_bandwidth": 45.5}])
    # A program with a main of its own, which knows no option of Google Benchmark and writes no file.
    shutil.copy(shutil.which("true"), at("ours", "bench_own_main"))
    for number, name in enumerate(peers):
        peer(at("peers", name), 30 + number)
    cpuinfo(at("cpuinfo"), *machines[0][:4])
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}

    def run(*options):
        if os.path.exists(at("started")):
            os.remove(at("started"))
        return subprocess.run([sys.executable, compare, "--ours", at("ours"), "--peers", at("peers"), "--rounds", "1", "--cpuinfo", at("cpuinfo"), *options],
                              capture_output=True, text=True, env=environment)

    def started():
        return [os.path.basename(line.strip()) for line in open(at("started"), encoding="utf-8")] if os.path.exists(at("started")) else []

    # Every peer of the list, each beside the peaks of its minute, in the table and in the file.
    whole = run("--out", at("lines"))
    check(whole.returncode == 0, "a run with all peers fails", whole)
    for number, name in enumerate(peers):
        check(f"| W3a | step_time | 1 | {name} | {30 + number} us | 0 % | {(30 + number) / 20:.3g}x | 123 | 45.5 |" in whole.stdout, f"no row of {name}", whole)
    check("| W3a | step_time | 1 | gradus | 20 us | 0 % |  | 123 | 45.5 |" in whole.stdout, "no row of ours", whole)
    lines = [json.loads(line) for line in open(at("lines"), encoding="utf-8")]
    check(len(lines) == len(peers) + 1 and all(line["peak_gflops"] == 123 and line["peak_bandwidth"] == 45.5 for line in lines), f"--out has {lines}")
    order = started()
    check(all(a == "bench_peak" for a, b in zip(order, order[1:]) if b in peers), f"no peak before each peer: {order}")

    # A peer that is not there: nothing runs, and the sentence says what to do. --without leaves it out, and says so.
    os.remove(at("peers", "gemm_onednn"))
    absent = run()
    check(absent.returncode != 0 and "gemm_onednn; build them, or leave them out by --without gemm_onednn" in absent.stderr, "a peer that is absent", absent)
    check(not started() and "|" not in absent.stdout, f"programs ran without a peer: {started()}", absent)
    without = run("--without", "gemm_onednn", "--without", "bench_io")
    check(without.returncode == 0 and "left out: gemm_onednn bench_io" in without.stderr, "--without", without)
    check("bench_io" not in without.stdout and "bench_io" not in started() and "| bench_torch |" in without.stdout, "--without leaves out what it names", without)

    # A peer that fails: its error and an exit that is not 0, also if it printed results before. The same of ours.
    rest = ("--without", "gemm_onednn")
    peer(at("peers", "bench_eigen"), 31, "echo no such library >&2\nexit 3\n")
    failed = run(*rest)
    check(failed.returncode != 0 and "This table is not whole:\nfailed: bench_eigen: exit 3: no such library" in failed.stderr, "a peer that fails", failed)
    check("| bench_torch |" in failed.stdout, "the others are shown", failed)
    peer(at("peers", "bench_eigen"), 31)
    program(at("ours", "bench_all"), "exit 1\n")
    check(run(*rest).returncode != 0, "a benchmark of ours that fails")
    os.remove(at("ours", "bench_peak"))
    check("no bench_peak" in run(*rest).stderr, "no bench_peak")

    # What it calls the processor: its function alone, since a start for each machine takes as long as all of the above.
    check("# Invented 1000 (Zen 2, family 23, model 49), AVX2, 256 bits; OPENBLAS_CORETYPE=ZEN;" in whole.stderr, "the first line names the processor", whole)
    tree = ast.parse(open(compare, encoding="utf-8").read())
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "processor"]
    names = {"os": os, "a": argparse.Namespace(cpuinfo=at("cpu"))}
    exec(compile(tree, compare, "exec"), names)
    for *machine, core, width, blas in machines:
        cpuinfo(at("cpu"), *machine)
        want = (f"Invented 1000 ({core}, family {machine[1]}, model {machine[2]})", width, blas)
        found = names["processor"]()
        check(found == want, f"expected {want}, found {found}")

print(*wrong, sep="\n")
print(f"{len(wrong)} checks failed")
sys.exit(1 if wrong else 0)
