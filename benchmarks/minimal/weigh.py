#!/usr/bin/env python3
"""What the smallest training program costs to compile, to ship and to start.

    benchmarks/minimal/weigh.py [--reps 5] [--cxx g++] [--flags "-O3 -march=native"] [--check] [SOURCE.cpp]

One JSON line a figure, under the workload name that other libraries' programs report theirs ("W7/mini_mlp"):
compile_link_time in s, binary_size in KiB (and stripped), start_to_first_step in ms, all medians. A program takes the
number of steps as its argument and prints one line after the first. --check fails above 3 s, 100 KiB, 10 ms."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("source", nargs="?", default=os.path.join(here, "main.cpp"))
parser.add_argument("--reps", type=int, default=5)
parser.add_argument("--cxx", default="g++")
parser.add_argument("--flags", default="-O3 -march=native")
parser.add_argument("--check", action="store_true")
a = parser.parse_args()
most = {"compile_link_time": 3, "binary_size": 100, "start_to_first_step": 10}
over = []


def report(metric, values, unit):
    median = statistics.median(values)
    spread = (max(values) - min(values)) / median if median else 0
    print(json.dumps({"peer": "gradus", "workload": "W7/mini_mlp", "metric": metric, "value": round(median, 3),
                      "unit": unit, "threads": 1, "spread": round(spread, 3), "reps": len(values)}), flush=True)
    if median > most.get(metric, median):
        over.append(f"{metric} is {median:.3g} {unit}, more than {most[metric]}")


def milliseconds(started):
    return (time.monotonic() - started) * 1e3


with tempfile.TemporaryDirectory() as scratch:
    program = os.path.join(scratch, "program")
    command = [a.cxx, "-std=c++20", *a.flags.split(), "-I" + os.path.join(root, "include"), a.source, "-o", program]
    seconds = []
    for _ in range(max(1, a.reps // 2)):
        started = time.monotonic()
        subprocess.run(command, check=True, env={**os.environ, "CCACHE_DISABLE": "1"})
        seconds.append(time.monotonic() - started)
    report("compile_link_time", seconds, "s")
    report("binary_size", [os.path.getsize(program) / 1024], "KiB")
    subprocess.run(["strip", "-o", program + "_stripped", program], check=True)
    report("stripped_size", [os.path.getsize(program + "_stripped") / 1024], "KiB")
    first = []
    for _ in range(a.reps + 2):
        started = time.monotonic()
        process = subprocess.Popen([program, "1000000"], stdout=subprocess.PIPE)
        process.stdout.readline()
        first.append(milliseconds(started))
        process.kill()
        process.communicate()
    report("start_to_first_step", first[1:], "ms")
print("\n".join(over), file=sys.stderr)
sys.exit(1 if over and a.check else 0)
