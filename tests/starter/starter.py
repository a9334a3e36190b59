#!/usr/bin/env python3
"""starter.py ROOT COMPILER CMAKE [DRAW]: each folder of examples/starter, copied out of the tree, built and run as its
table says, and what it prints is looked at. A default run builds one, chosen by DRAW; long runs and no DRAW all.

The service is killed in the middle, started again, and has to answer as one that was not. What Conan and vcpkg do before
CMake runs is an installation here (tests/install/roads.py asks the clients themselves)."""
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

root, compiler, cmake = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3]
starters = os.path.join(root, "examples", "starter")
environment = {k: v for k, v in os.environ.items() if k not in ("CXXFLAGS", "CPPFLAGS", "LDFLAGS", "DESTDIR")}
environment["CXX"] = compiler
CHEAP = "-O0 -DGRADUS_INLINE=inline"
generator = ["-G", "Ninja"] if shutil.which("ninja") else []


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} returned {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def expect(right, what):
    if not right:
        sys.exit(f"not so: {what}")


def installed(scratch):
    prefix = os.path.join(scratch, "prefix")
    if not os.path.exists(prefix):
        run(cmake, "-S", root, "-B", f"{scratch}/ours", *generator, f"-DCMAKE_CXX_COMPILER={compiler}", "-DGRADUS_BUILD_TESTS=OFF",
            "-DGRADUS_BUILD_EXAMPLES=OFF", "-DGRADUS_BUILD_BENCHMARKS=OFF", f"-DCMAKE_INSTALL_PREFIX={prefix}")
        run(cmake, "--install", f"{scratch}/ours")
    return prefix


def build(folder, *options):
    run(cmake, "-S", folder, "-B", f"{folder}/build", *generator, f"-DCMAKE_CXX_COMPILER={compiler}", "-DCMAKE_BUILD_TYPE=Debug",
        f"-DCMAKE_CXX_FLAGS={CHEAP}", *options)
    run(cmake, "--build", f"{folder}/build")
    return os.path.join(folder, "build")


def examples(count):
    """Lines that a model can learn: two features decide, others do not."""
    draw, lines = random.Random(1), []
    for _ in range(count):
        chosen = draw.sample(range(100), 5)
        truth = draw.random() < 1 / (1 + math.exp(-(3 if 7 in chosen else 0) + (3 if 11 in chosen else 0)))
        lines.append(f"{int(truth)} " + " ".join(f"{f}:1" for f in chosen))
    return lines


def service(folder, scratch):
    program = os.path.join(build(folder, f"-DCMAKE_PREFIX_PATH={installed(scratch)}"), "service")
    lines = examples(3000)
    whole = run(program, f"{scratch}/whole", input="\n".join(lines) + "\n").split()
    expect(len(whole) == len(lines) and all(0 <= float(p) <= 1 for p in whole), "an answer for each line")
    first = run(program, f"{scratch}/parts", input="\n".join(lines[:1234]) + "\n").split()
    # Killed: what it learned since the last save is gone, and it says after which line it goes on.
    killed = subprocess.Popen([program, f"{scratch}/parts"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True)
    killed.stdin.write("\n".join(lines[1234:1600]) + "\n")
    killed.stdin.flush()
    expect("goes on after line 1234" in killed.stderr.readline(), "it goes on where it was stopped")
    for _ in range(20):
        killed.stdout.readline()  # it is at work
    killed.kill()
    killed.communicate()
    rest = run(program, f"{scratch}/parts", input="\n".join(lines[1234:]) + "\n").split()
    expect(first + rest == whole, "the same answers, stopped, killed and started again")


def conan(folder, scratch):
    at = build(folder, f"-DCMAKE_PREFIX_PATH={installed(scratch)}")
    said = run(os.path.join(at, "starter"), cwd=scratch)
    expect(float(said.rsplit("accuracy ", 1)[1]) > 0.95, f"the ring is learned: {said}")
    expect(os.path.exists(f"{scratch}/run/checkpoint"), "its checkpoints are there")


def vcpkg(folder, scratch):
    with open(os.path.join(folder, "vcpkg-configuration.json"), encoding="utf-8") as file:
        for ports in json.load(file)["overlay-ports"]:
            expect(os.path.isdir(os.path.join(root, ports.removeprefix("gradus/"), "gradus")), f"{ports} has the port")
    at = build(folder, f"-DCMAKE_PREFIX_PATH={installed(scratch)}")
    expect("below 1e-4" in run(os.path.join(at, "starter"), "6"), "the mean is learned")


def makefile(folder, _):
    run("make", f"GRADUS={root}/include", f"CXX={compiler}", f"CXXFLAGS={CHEAP}", cwd=folder)
    said = run(os.path.join(folder, "fit"), input="".join(f"{x} {3 * x - 2}\n" for x in (-1, 0, 0.5, 2, 3)))
    expect(said == "y = 3.000 x + -2.000\n", f"the line is found: {said}")


def board(folder, _):
    if not shutil.which("arm-none-eabi-g++") or not shutil.which("qemu-system-arm"):
        return "there is no cross compiler or no emulator"
    run("make", f"GRADUS={root}/include", cwd=folder)
    done = subprocess.run(["make", f"GRADUS={root}/include", "run"], cwd=folder, capture_output=True, text=True, timeout=100)
    expect(done.returncode == 0 and "learned" in done.stdout + done.stderr, f"the board learns: {done.stdout}{done.stderr}")
    return None


ALL = {"service": service, "conan": conan, "vcpkg": vcpkg, "makefile": makefile, "board": board}
expect(sorted(ALL) == sorted(n for n in os.listdir(starters) if os.path.isdir(os.path.join(starters, n))), "each starter has its test")
# The versions that starters name are this one's.
header = open(os.path.join(root, "include", "gradus", "base", "version.hpp"), encoding="utf-8").read()
version = ".".join(re.search(rf"GRADUS_VERSION_{part} +(\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH"))
for file, said in (("conan/conanfile.txt", r"^gradus/(\d\S*)$"), ("service/CMakeLists.txt", r"GIT_TAG v(\S+)")):
    text = open(os.path.join(starters, file), encoding="utf-8").read()
    expect(re.findall(said, text, re.M) == [version], f"{file} names the version {version}")
names = sorted(ALL)
if len(sys.argv) > 4 and "GRADUS_LONG" not in os.environ:
    names = [names[int(sys.argv[4]) % len(names)]]
with tempfile.TemporaryDirectory() as scratch:
    for name in names:
        shutil.copytree(os.path.join(starters, name), os.path.join(scratch, name))
        skipped = ALL[name](os.path.join(scratch, name), scratch)
        print(f"{name}: skipped, {skipped}" if skipped else f"{name}: built and run")
        if skipped and len(names) == 1:
            sys.exit(77)
