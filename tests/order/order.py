#!/usr/bin/env python3
"""order.py COMPILER INCLUDE SEED [DRAW]: all headers in one order, read by a user with many warnings.

The headers stand in an order drawn from SEED; an odd seed turns the order of the even one before it around, so that two
seeds try every pair of headers both ways. With DRAW, a number by the commit, each commit has orders of its own: the
seed is SEED + 2 DRAW. Behind the headers comes program.inc with names of the user's own. It is compiled with -Werror
and with warnings that the library's own build does not ask for, and no header is a system header. With $GRADUS_LONG,
eight orders."""
import os
import random
import re
import subprocess
import sys
import tempfile

compiler, include, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]) + 2 * int(sys.argv[4] if len(sys.argv) > 4 else 0)
here = os.path.dirname(os.path.abspath(__file__))
warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wsign-conversion", "-Wold-style-cast",
            "-Werror"]
# Kernels' and passes' words. A user may call a type, a function, a variable so, and still write `using namespace gradus`.
types = ("block tile panel row column columns walk walker loop loops place location lifetime region arena span_of word "
         "item entry point cell layer data sample example image label model net network config settings options "
         "result results timer logger matrix vector tensor position state history player particle body").split()
functions = "load store copy swap_rows pad turn unroll tail advance bound run train test predict sum_up average_of".split()


def headers():
    found = []
    for folder, _, names in os.walk(os.path.join(include, "gradus")):
        for name in names:
            if name.endswith(".hpp"):
                found.append(os.path.relpath(os.path.join(folder, name), include).replace(os.sep, "/"))
    # Headers behind a library that is not everywhere, which a user asks for by name.
    return sorted(h for h in found if h not in ("gradus/cpu/cblas.hpp", "gradus/cpu/onednn.hpp", "gradus/cluster/grpc.hpp", "gradus/cluster/mpi.hpp"))


def compile_order(seed):
    order = headers()
    random.Random(seed // 2).shuffle(order)
    if seed % 2:
        order.reverse()
    own = "".join(f"struct {t} {{ int v = 0; }};\ninline int use_of_{t}({t} x) {{ return x.v; }}\n" for t in types)
    own += "".join(f"inline int {f}(int x) {{ return x; }}\ninline int use_of_{f}() {{ return {f}(1); }}\n" for f in functions)
    program = open(os.path.join(here, "program.inc"), encoding="utf-8").read().replace("@@OWN@@", own)
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "order.cpp")
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(f"#include <{h}>\n" for h in order) + program)
        done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", *warnings, "-DGRADUS_ZLIB", "-DGRADUS_PROTOZERO",
                               "-DGRADUS_STB", "-I", include, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
    if done.returncode != 0:
        said = done.stdout.split("\n")
        first = [line for line in said if re.search(r"(error|warning):", line)]
        print(f"seed {seed}:", *first[:40], "---", *said[:60], sep="\n")
        return 1
    print(f"seed {seed}: {len(order)} headers, no warning")
    return 0


seeds = [seed, seed ^ 1]
if "GRADUS_LONG" in os.environ:
    seeds = range(seed, seed + 16, 2)
sys.exit(max(compile_order(s) for s in seeds))
