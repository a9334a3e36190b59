#!/usr/bin/env python3
"""Runs a program of another machine (--emulator qemu-... -L ...) and its twin here. Both must return 0 and print the same."""
import argparse
import subprocess
import sys

parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("twin")
parser.add_argument("--emulator", nargs="*", default=[])
a, rest = parser.parse_known_args()
there = subprocess.run([*a.emulator, *rest, a.program], capture_output=True, text=True, timeout=100)
here = subprocess.run([a.twin], capture_output=True, text=True, timeout=100)
print(there.stdout + there.stderr, end="")

problems = []
if there.returncode != 0:
    problems.append(f"the other machine's program returned {there.returncode}")
if here.returncode != 0:
    problems.append(f"this machine's returned {here.returncode}")
if there.stdout + there.stderr != here.stdout + here.stderr:
    problems.append(f"they differ; this machine said:\n{here.stdout}{here.stderr}")
if not here.stdout.strip():
    problems.append("nothing was said, so nothing was compared")
print(*problems, sep="\n", end="\n" if problems else "")
sys.exit(1 if problems else 0)
