#!/usr/bin/env python3
"""builds.py COMPILER INCLUDE: files of one program that were compiled with different answers (base/build.hpp).

They stand in one program and each does what its own flags say; where one hands an object to the other, the program does
not link, and the missing symbol names the caller's build.
"""
import os
import subprocess
import sys
import tempfile

compiler, include = sys.argv[1], os.path.abspath(sys.argv[2])
HEADER = """#include <gradus/update/rules/adam.hpp>
#include <gradus/cpu/simd.hpp>
int width_here();
int width_there();
double beta_there(const gradus::adam& rule);
"""
HERE = HEADER + """
int width_here() { return GRADUS_SIMD; }
int main() {
#if defined(HANDS_OVER)
  return beta_there(gradus::adam{.beta1 = 0.5}) == 0.5 ? 0 : 1;
#else
  return width_here() != width_there() ? 0 : 1;
#endif
}
"""
THERE = HEADER + """
int width_there() { return GRADUS_SIMD; }
double beta_there(const gradus::adam& rule) { return rule.beta1; }
"""


def links(scratch, here, there):
    with open(os.path.join(scratch, "here.cpp"), "w", encoding="utf-8") as file:
        file.write(HERE)
    with open(os.path.join(scratch, "there.cpp"), "w", encoding="utf-8") as file:
        file.write(THERE)
    for name, flags in (("here", here), ("there", there)):
        subprocess.run([compiler, "-std=c++20", "-I", include, *flags, "-c", name + ".cpp", "-o", name + ".o"], cwd=scratch,
                       check=True)
    linked = subprocess.run([compiler, "here.o", "there.o", "-o", "program"], cwd=scratch, stderr=subprocess.PIPE, text=True)
    return linked.returncode == 0, linked.stderr


with tempfile.TemporaryDirectory() as scratch:
    none, wide = ["-DGRADUS_SIMD=0"], ["-DGRADUS_SIMD=1", "-DGRADUS_ZLIB"]
    linked, said = links(scratch, none, wide)
    if not linked:
        sys.exit(f"two builds do not stand in one program:\n{said}")
    if subprocess.run([os.path.join(scratch, "program")]).returncode != 0:
        sys.exit("the linker took one build's functions for the other's")
    linked, said = links(scratch, [*none, "-DHANDS_OVER"], none)
    if not linked or subprocess.run([os.path.join(scratch, "program")]).returncode != 0:
        sys.exit(f"one build does not link with itself:\n{said}")
    linked, said = links(scratch, [*none, "-DHANDS_OVER"], wide)
    if linked or "gradus::scalar::adam" not in said:
        sys.exit(f"an object was handed from one build to another, and the linker said: {said or 'nothing'}")
