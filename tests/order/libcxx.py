#!/usr/bin/env python3
"""libcxx.py COMPILER INCLUDE: with LLVM's standard library, README's first program, and with it the umbrella, and the
garden's, which has chains of rules, are compiled, and the program of examples/xor_edge is run.

What that lacks in a version that distributions still have (std::jthread and std::from_chars of a double in version 16) is
easily written by who builds with libstdc++ alone. Warnings are errors. With $GRADUS_LONG, the program of doors.py is
compiled, linked and run as well. Returns 77, which is a skipped test, where libc++ is not installed."""
import os
import subprocess
import sys
import tempfile

compiler, include = sys.argv[1:]
here = os.path.dirname(os.path.abspath(__file__))
command = [compiler, "-std=c++20", "-stdlib=libc++", "-fsyntax-only"]
probe = subprocess.run([*command, "-xc++", "-"], input="#include <vector>\n", stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True)
if probe.returncode != 0:
    print("libc++ is not installed (libc++-16-dev, libc++abi-16-dev; scripts/deps.sh):", probe.stdout[:400])
    sys.exit(77)
examples = os.path.join(here, "..", "..", "examples")
programs = [os.path.join(examples, "quickstart.cpp"), os.path.join(examples, "garden", "main.cpp")]
done = subprocess.run([*command, "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-DGRADUS_ZLIB",
                       "-DGRADUS_PROTOZERO", "-DGRADUS_STB", "-I", include, *programs])
if done.returncode == 0:
    with tempfile.TemporaryDirectory() as scratch:
        program = os.path.join(scratch, "xor")
        done = subprocess.run([*command[:-1], "-DGRADUS_INLINE=inline", "-Wall", "-Wextra", "-Werror", "-I", include,
                               os.path.join(examples, "xor_edge", "main.cpp"), "-o", program, "-pthread"])
        if done.returncode == 0:
            said = subprocess.run([program], stdout=subprocess.PIPE, text=True)
            if said.returncode != 0 or "1 xor 0" not in said.stdout:
                sys.exit(f"examples/xor_edge with libc++ returned {said.returncode} and printed {said.stdout}")
if done.returncode == 0 and "GRADUS_LONG" in os.environ:
    doors = os.path.join(here, "..", "doors", "doors.py")
    done = subprocess.run([sys.executable, doors, f"{compiler} -stdlib=libc++", include, "whole"])
sys.exit(1 if done.returncode != 0 else 0)
