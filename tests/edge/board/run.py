#!/usr/bin/env python3
"""Runs an image on an emulated board and its twin here; both must return 0 and print the same. Prints the image's size.

A source may set its budget:   // flash at most: 32768      // ram at most: 8192   (bytes; ram without stack and heap)"""
import argparse
import os
import re
import subprocess
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--qemu", required=True)
parser.add_argument("--machine", required=True)
parser.add_argument("--size", required=True)
parser.add_argument("--source", required=True)
parser.add_argument("image")
parser.add_argument("twin")
a = parser.parse_args()
if not os.path.exists(a.image):
    sys.exit(f"{a.image} is not there: build first")

board = subprocess.run([a.qemu, "-M", a.machine, "-semihosting-config", "enable=on,target=native", "-display", "none",
                        "-serial", "none", "-monitor", "none", "-kernel", a.image],
                       capture_output=True, text=True, timeout=100)
here = subprocess.run([a.twin], capture_output=True, text=True, timeout=100)
said = board.stdout + board.stderr  # semihosting's console is one or the other, after the version of qemu

sizes = subprocess.run([a.size, a.image], capture_output=True, text=True, check=True).stdout.split("\n")[1].split()
text, data, bss = (int(n) for n in sizes[:3])
print(f"{a.machine}: text {text}, data {data}, bss {bss}: flash {text + data}, ram {data + bss} bytes")
print(said, end="")

problems = []
if board.returncode != 0:
    problems.append(f"the board returned {board.returncode}" + (" (a fault)" if board.returncode == 99 else ""))
if here.returncode != 0:
    problems.append(f"this machine returned {here.returncode}")
if said != here.stdout:
    problems.append(f"the board and this machine differ; this machine said:\n{here.stdout}")
if not here.stdout.strip():
    problems.append("nothing was said, so nothing was compared")
source = open(a.source, encoding="utf-8").read()
for name, used in (("flash", text + data), ("ram", data + bss)):
    limit = re.search(rf"^// {name} at most: *(\d+)", source, re.M)
    if limit and used > int(limit.group(1)):
        problems.append(f"{name}: {used} bytes, at most {limit.group(1)} were agreed")
print(*problems, sep="\n", end="\n" if problems else "")
sys.exit(1 if problems else 0)
