#!/usr/bin/env python3
"""Runs an image on an emulated board and its twin here; both must return 0 and print the same. Prints the image's size.

A source may say of its images
    // flash at most: m4f 32768, m3 34816     // ram at most: 8192     bytes; ram without stack and heap (with --budget
                                              and the board's name; a budget lies within 3 % of what is used)
    // instructions at most: 2800000                     of a step that the program counts (count.hpp; --instructions)
    // stack at most: 1200                               of the whole program on the same board (count.hpp)
    // beside -DWITHOUT_X at most: 2048                  more flash than the image that is built so (with --without)
    // links no heap and no exceptions                   none of the symbols below is in it
    // links no double                                   nor a routine of the compiler for doubles"""
import argparse
import os
import re
import subprocess
import sys

unwanted = re.compile(r"^_*(malloc|calloc|realloc|free|sbrk)(_r)?$|^__cxa_(throw|allocate_exception|begin_catch|guard_acquire)$"
                      r"|^_Unwind_|^__gxx_personality|^_ZSt\d+__throw_|ios_base|basic_ostream|^_*v?f?i?printf")
unwanted_double = re.compile(r"^__aeabi_(c?d\w*|\w+2d)$|^__\w*df[2-3]?$|^__\w*dfsf2$")

parser = argparse.ArgumentParser()
parser.add_argument("--qemu", required=True)
parser.add_argument("--machine", required=True)
parser.add_argument("--bios")
parser.add_argument("--size", required=True)
parser.add_argument("--nm", required=True)
parser.add_argument("--budget")
parser.add_argument("--without")
parser.add_argument("--instructions", action="store_true")
parser.add_argument("--timeout", type=int, default=100)
parser.add_argument("--folder", help="where both run")
parser.add_argument("--source", required=True)
parser.add_argument("image")
parser.add_argument("twin")
a = parser.parse_args()
if not os.path.exists(a.image):
    sys.exit(f"{a.image} is not there: build first")


def size(image):
    said = subprocess.run([a.size, image], capture_output=True, text=True, check=True).stdout.split("\n")[1].split()
    text, data, bss = (int(n) for n in said[:3])
    return text, data, bss


board = subprocess.run([a.qemu, "-M", a.machine, *(["-bios", a.bios] if a.bios else []), "-semihosting-config",
                        "enable=on,target=native", "-display", "none", "-serial", "none", "-monitor", "none",
                        *(["-icount", "shift=0"] if a.instructions else []), "-kernel", a.image], capture_output=True,
                       text=True, timeout=a.timeout, cwd=a.folder)
here = subprocess.run([a.twin], capture_output=True, text=True, timeout=a.timeout, cwd=a.folder)
said = board.stdout + board.stderr  # semihosting's console is one or the other, after the version of qemu
counted = [int(n, 16) for n in re.findall(r"^# instructions (\w+)$", said, re.M)]
stack = [int(n, 16) for n in re.findall(r"^# stack (\w+)$", said, re.M)]
said = re.sub(r"^# .*\n", "", said, flags=re.M)  # what this board alone says

text, data, bss = size(a.image)
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
measured = [("flash", text + data), ("ram", data + bss)]
if a.instructions:
    measured += [("stack", stack[0])] if stack else []
    if not stack:
        problems.append("the stack was not measured: board::say_stack() belongs at the end of the program")
for name, used in measured:
    agreed = re.search(rf"^// {name} at most: *(.*)", source, re.M)
    if name == "stack" and not agreed:
        problems.append(f"stack: {used} bytes, and the program agrees to none")
    if not a.budget or not agreed:
        continue
    limit = re.search(rf"\b{a.budget} (\d+)", agreed[1]) or re.match(r"(\d+)", agreed[1])
    if not limit:
        problems.append(f"{name}: no number of bytes is agreed for {a.budget}: {agreed[0]}")
    elif used > int(limit[1]):
        problems.append(f"{name}: {used} bytes, at most {limit[1]} were agreed")
    elif int(limit[1]) > 1.03 * used + 64:
        problems.append(f"{name}: {used} bytes, and {limit[1]} were agreed, more than 3 % above; lower the budget")
if a.instructions:
    limit = re.search(r"^// instructions at most: *(\d+)", source, re.M)
    print(f"instructions of a step: {counted}")
    if not counted:
        problems.append("no instructions were counted")
    elif max(counted) > int(limit.group(1)):
        problems.append(f"{max(counted)} instructions, at most {limit.group(1)} were agreed")
    elif int(limit.group(1)) > 1.03 * max(counted):
        problems.append(f"{max(counted)} instructions, and {limit.group(1)} were agreed, more than 3 % above; lower it")
if a.without:
    limit = int(re.search(r"^// beside \S+ at most: *(\d+)", source, re.M).group(1))
    more = text + data - sum(size(a.without)[:2])
    print(f"{more} bytes of flash more than without")
    if more > limit:
        problems.append(f"{more} bytes of flash more than without, at most {limit} were agreed")
    elif limit > 1.03 * more + 64:
        problems.append(f"{more} bytes of flash more than without, and {limit} were agreed, more than 3 % above; lower it")
kinds = [kind for words, kind in (("heap and no exceptions", unwanted), ("double", unwanted_double))
         if re.search(rf"^// links no {words}$", source, re.M)]
if kinds:
    names = subprocess.run([a.nm, a.image], capture_output=True, text=True, check=True).stdout.split("\n")
    names = [line.split()[-1] for line in names if line.strip()]
    if len(names) < 10:
        problems.append("the image has no symbols, so none was looked at")
    problems += [f"{n} is linked" for n in names if any(kind.search(n) for kind in kinds)]
print(*problems, sep="\n", end="\n" if problems else "")
sys.exit(1 if problems else 0)
