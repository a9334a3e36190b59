#!/usr/bin/env python3
"""starter.py ROOT COMPILER CMAKE [DRAW]: each folder of examples/starter, copied out of the tree, built and run by its
lines in examples/starter/README.md, and what it prints is looked at. A default run builds one, chosen by DRAW; long
runs and no DRAW all.

The lines run as they stand there. $GRADUS is a repository of this tree. What Conan and vcpkg do before CMake runs is an
installation here: the programs and the toolchain that the lines name are stand-ins (tests/install/roads.py asks the
clients themselves). The service is killed in the middle, started again, and has to answer as one that was not."""
import importlib.machinery
import importlib.util
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
CHEAP = "-O0 -DGRADUS_INLINE=inline"
environment = {k: v for k, v in os.environ.items()
               if k not in ("CXXFLAGS", "CPPFLAGS", "LDFLAGS", "DESTDIR", "CMAKE_PREFIX_PATH", "GRADUS", "VCPKG_ROOT")}
environment.update(CXX=compiler)
if shutil.which("ninja"):
    environment["CMAKE_GENERATOR"] = "Ninja"
cheap = {"CXXFLAGS": CHEAP, "CMAKE_BUILD_TYPE": "Debug"}


def run(*command, fails=False, env=None, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env or environment,
                          **more)
    if (done.returncode != 0) != fails:
        sys.exit(f"{' '.join(command)} returned {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stderr if fails else done.stdout


def expect(right, what):
    if not right:
        sys.exit(f"not so: {what}")


def lines_of_page():
    """The lines of examples/starter/README.md by folder."""
    with open(os.path.join(starters, "README.md"), encoding="utf-8") as file:
        return dict(re.findall(r"^<!-- starter: (\S+) -->\n```sh\n(.*?)^```$", file.read(), re.S | re.M))


def paste(folder, **more):
    """Runs a starter's lines in its folder; what they print, errors too."""
    lines = "exec 2>&1\nset -euo pipefail\n" + LINES[os.path.basename(folder)]
    return run("bash", "-c", lines, cwd=folder, env={**environment, **cheap, **more}, stdin=subprocess.DEVNULL)


def program(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)


def installed(scratch):
    prefix = os.path.join(scratch, "prefix")
    if not os.path.exists(prefix):
        run(cmake, "-S", root, "-B", f"{scratch}/ours", "-DGRADUS_BUILD_TESTS=OFF", "-DGRADUS_BUILD_EXAMPLES=OFF",
            "-DGRADUS_BUILD_BENCHMARKS=OFF", f"-DCMAKE_INSTALL_PREFIX={prefix}")
        run(cmake, "--install", f"{scratch}/ours")
    return prefix


def optimized_by_default(folder, scratch):
    """Who says no build type gets an optimizer: without one, inlining that is forced is slow and large."""
    at = os.path.join(folder, "by_default")
    run(cmake, "-S", folder, "-B", at, f"-DCMAKE_PREFIX_PATH={installed(scratch)}",
        "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
    with open(os.path.join(at, "compile_commands.json"), encoding="utf-8") as file:
        own = [e["command"] for e in json.load(file) if e["file"] == os.path.join(folder, "main.cpp")]
    expect(len(own) == 1 and re.search(r" -O[23] ", own[0]), f"a build without a type has an optimizer: {own}")
    return at


def examples(count):
    """Lines that a model can learn: two features decide, others do not."""
    draw, lines = random.Random(1), []
    for _ in range(count):
        chosen = draw.sample(range(100), 5)
        truth = draw.random() < 1 / (1 + math.exp(-(3 if 7 in chosen else 0) + (3 if 11 in chosen else 0)))
        lines.append(f"{int(truth)} " + " ".join(f"{f}:1" for f in chosen))
    return lines


def service(folder, scratch):
    # Nothing is installed and there is no address: CMake says what is missing and what to do. An address that comes
    # later is cloned.
    said = run(cmake, "-S", folder, "-B", f"{folder}/build", "-DCMAKE_DISABLE_FIND_PACKAGE_gradus=ON", fails=True,
               env={k: v for k, v in {**environment, **cheap}.items() if k != "GRADUS"})
    for words in ("CMakeLists.txt", "service: gradus 0.6 is not installed", "GRADUS_REPOSITORY is empty",
                  "-DCMAKE_PREFIX_PATH=FOLDER", "export GRADUS="):
        expect(words in " ".join(said.split()), f'a refusal with thing, place and remedy, "{words}": {said}')
    said = paste(folder)
    expect(len(re.findall(r"^0\.\d{6}$", said, re.M)) == 2 and "saved after line 2" in said, f"two answers: {said}")
    expect(os.path.isdir(f"{folder}/build/_deps/gradus-src/include"), "it cloned $GRADUS")
    expect(not os.path.exists(f"{optimized_by_default(folder, scratch)}/_deps"), "what is installed is not cloned")

    built = os.path.join(folder, "build", "service")
    lines = examples(3000)
    whole = run(built, f"{scratch}/whole", input="\n".join(lines) + "\n").split()
    expect(len(whole) == len(lines) and all(0 <= float(p) <= 1 for p in whole), "an answer for each line")
    first = run(built, f"{scratch}/parts", input="\n".join(lines[:1234]) + "\n").split()
    # Killed: what it learned since the last save is gone, and it says after which line it goes on.
    killed = subprocess.Popen([built, f"{scratch}/parts"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
    killed.stdin.write("\n".join(lines[1234:1600]) + "\n")
    killed.stdin.flush()
    expect("goes on after line 1234" in killed.stderr.readline(), "it goes on where it was stopped")
    for _ in range(20):
        killed.stdout.readline()  # it is at work
    killed.kill()
    killed.communicate()
    rest = run(built, f"{scratch}/parts", input="\n".join(lines[1234:]) + "\n").split()
    expect(first + rest == whole, "the same answers, stopped, killed and started again")


def conan(folder, scratch):
    with open(os.path.join(folder, "conanfile.txt"), encoding="utf-8") as file:
        expect("cmake_layout" in file.read(), "its presets are cmake_layout's")
    # What `conan install` would write: a preset of the layout's folder that finds the package.
    variables = {"CMAKE_PREFIX_PATH": installed(scratch), "CMAKE_BUILD_TYPE": "Debug"}
    presets = {"version": 3, "buildPresets": [{"name": "conan-release", "configurePreset": "conan-release"}],
               "configurePresets": [{"name": "conan-release", "binaryDir": "${sourceDir}/build/Release",
                                     "cacheVariables": variables}]}
    with open(os.path.join(scratch, "presets.json"), "w", encoding="utf-8") as file:
        json.dump(presets, file)
    program(f"{scratch}/bin/conan", f"""case $1 in
create) test -f "$2/conanfile.py" ;;
install) test -f "$2/conanfile.txt" && cp {scratch}/presets.json CMakeUserPresets.json ;;
*) exit 1 ;;
esac
""")
    said = paste(folder)
    expect(float(said.rsplit("accuracy ", 1)[1].split()[0]) > 0.95, f"the ring is learned: {said}")
    expect(os.path.exists(f"{folder}/run/checkpoint"), "its checkpoints are there")
    optimized_by_default(folder, scratch)


def vcpkg(folder, scratch):
    # What the toolchain would do: the package of the ports that the folder's files name is found.
    with open(os.path.join(folder, "vcpkg-configuration.json"), encoding="utf-8") as file:
        ports = json.load(file)["overlay-ports"]
    os.makedirs(f"{scratch}/vcpkg/scripts/buildsystems")
    with open(f"{scratch}/vcpkg/scripts/buildsystems/vcpkg.cmake", "w", encoding="utf-8") as file:
        file.write(f"set(CMAKE_PREFIX_PATH {installed(scratch)})\n")
    said = paste(folder, VCPKG_ROOT=f"{scratch}/vcpkg")
    expect("below 1e-4" in said and "not below" not in said, f"the mean is learned: {said}")
    for port in ports:
        expect(os.path.isdir(os.path.join(folder, port, "gradus")), f"{port} has the port")
    expect("below 1e-4" in run(os.path.join(folder, "build", "starter"), "6"), "the mean of six is learned")
    optimized_by_default(folder, scratch)


def makefile(folder, _):
    expect(paste(folder).endswith("\ny = 2.000 x + 1.000\n"), "the line of the page is found")
    said = run(os.path.join(folder, "fit"), input="".join(f"{x} {3 * x - 2}\n" for x in (-1, 0, 0.5, 2, 3)))
    expect(said == "y = 3.000 x + -2.000\n", f"the line is found: {said}")
    here = {"cwd": folder, "env": {**environment, **cheap}}  # gradus::compiled, by make alone
    run("make", "clean", **here)
    run("make", "-j2", "COMPILED=1", **here)
    expect(os.path.exists(os.path.join(folder, "libgradus.a")), "COMPILED=1 makes a library")
    compiled = run(os.path.join(folder, "fit"), input="".join(f"{x} {3 * x - 2}\n" for x in (-1, 0, 0.5, 2, 3)))
    expect(compiled == said, f"the library's program prints the same: {compiled}")


def board(folder, _):
    if not shutil.which("arm-none-eabi-g++") or not shutil.which("qemu-system-arm"):
        return "there is no cross compiler or no emulator"
    said = paste(folder)
    expect("learned" in said, f"the board learns: {said}")
    return None


ALL = {"service": service, "conan": conan, "vcpkg": vcpkg, "makefile": makefile, "board": board}
LINES = lines_of_page()
folders = sorted(n for n in os.listdir(starters) if os.path.isdir(os.path.join(starters, n)))
expect(sorted(ALL) == sorted(LINES) == folders, "each starter has its lines in README.md and its test")
# The versions that starters name are this one's.
header = open(os.path.join(root, "include", "gradus", "base", "version.hpp"), encoding="utf-8").read()
version = ".".join(re.search(rf"GRADUS_VERSION_{part} +(\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH"))
interface = version.rsplit(".", 1)[0]
for file, said, wanted in (("conan/conanfile.txt", r"^gradus/(\d\S*)$", version),
                           ("service/CMakeLists.txt", r"find_package\(gradus (\S+)", interface),
                           ("service/CMakeLists.txt", r"gradus (\d[.\d]*) is not installed", interface)):
    text = open(os.path.join(starters, file), encoding="utf-8").read()
    expect(re.findall(said, text, re.M) == [wanted], f"{file} names the version {wanted}")
names = sorted(ALL)
if len(sys.argv) > 4 and "GRADUS_LONG" not in os.environ:
    names = [names[int(sys.argv[4]) % len(names)]]
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("roads", os.path.join(root, "tools", "roads"))
roads = importlib.util.module_from_spec(importlib.util.spec_from_loader("roads", loader))
loader.exec_module(roads)
with tempfile.TemporaryDirectory() as scratch:
    environment["GRADUS"] = roads.repository_of_this_tree(os.path.join(scratch, "repository"))
    os.makedirs(os.path.join(scratch, "bin"))
    program(os.path.join(scratch, "bin", "cmake"), f'exec "{cmake}" "$@"\n')
    environment["PATH"] = os.path.join(scratch, "bin") + os.pathsep + environment["PATH"]
    for name in names:
        shutil.copytree(os.path.join(starters, name), os.path.join(scratch, name))
        skipped = ALL[name](os.path.join(scratch, name), scratch)
        print(f"{name}: skipped, {skipped}" if skipped else f"{name}: built and run")
        if skipped and len(names) == 1:
            sys.exit(77)
