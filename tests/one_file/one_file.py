#!/usr/bin/env python3
"""one_file.py COMPILER ROOT [DRAW]: the library in one file (tools/single_header).

    The same tree, in another folder and with other hashes, gives the same bytes.
    It reads nothing but the standard library and the system's headers.
    README's first program compiles with it; in long runs it trains on a few drawn digits and prints what it prints with
    the folder, and so does a program that says every bit of a loss.
    The programs for boards, built from gradus_edge.hpp without exceptions and rtti, print what they print with the
    folder: one, chosen by DRAW, and all in long runs, then the one that has a heap from gradus.hpp as well.
    A program with what it includes as one text (--program) prints what it prints with the folder.
    Beside the folder, beside the other file, or with GRADUS_COMPILED, it is refused by a sentence of ours, first.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

long = "GRADUS_LONG" in os.environ
compiler, root = sys.argv[1], os.path.abspath(sys.argv[2])
draw = int(sys.argv[3]) if len(sys.argv) > 3 else 0
FLAGS = ["-std=gnu++20", "-O0", "-DGRADUS_INLINE=inline"]
MAIN = """#include "model.hpp"
#include <cstdio>
int main() { std::printf("%a\\n", static_cast<double>(train().loss)); }
"""


def run(*command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)


def must(*command, **more):
    done = run(*command, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} returned {done.returncode}:\n{done.stdout[:6000]}")
    return done.stdout


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def make(tree, folder, seed):
    must(sys.executable, os.path.join(tree, "tools", "single_header"), folder,
         env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": "C"})


def folder_of(one_file, folder):
    """A folder gradus/ each of whose headers is that one file."""
    for path, _, names in os.walk(os.path.join(root, "include", "gradus")):
        for name in names:
            if name.endswith(".hpp"):
                write(os.path.join(folder, os.path.relpath(path, os.path.join(root, "include")), name),
                      f'#include "{one_file}"\n')
    return folder


def draws_digits(folder):
    """Files of images and labels as the demo's, by the demo's own drawing."""
    program = os.path.join(folder, "draws")
    source = write(os.path.join(folder, "draws.cpp"), """#include <gradus/input/idx.hpp>
#include "draw.hpp"
int main(int, char** argv) {
  const std::string stem = argv[1];
  const digits::drawings drawn = digits::draw_digits(600, std::stoull(argv[2]));
  gradus::write_idx(stem + "-images-idx3-ubyte", {std::span<const std::uint8_t>(drawn.images), {600, 28, 28}});
  gradus::write_idx(stem + "-labels-idx1-ubyte", {std::span<const std::uint8_t>(drawn.labels), {600}});
}
""")
    must(compiler, "-std=c++20", "-O1", "-I" + os.path.join(root, "include"), "-I" + os.path.join(root, "examples", "digits"),
         source, "-o", program, "-pthread")
    for part, seed in (("train", 1), ("test", 2)):
        must(program, os.path.join(folder, part), str(seed))


with tempfile.TemporaryDirectory() as scratch:
    one = os.path.join(scratch, "one")
    make(root, one, "1")
    tree = os.path.join(scratch, "copy")
    for what in ("include", "tools"):
        shutil.copytree(os.path.join(root, what), os.path.join(tree, what))
    shutil.copy(os.path.join(root, "LICENSE"), tree)
    make(tree, os.path.join(scratch, "again"), "2")
    for name in ("gradus.hpp", "gradus_edge.hpp"):
        text, again = (open(os.path.join(scratch, f, name), "rb").read() for f in ("one", "again"))
        if text != again:
            sys.exit(f"{name} differs when it is made a second time")
        if root.encode() in text:
            sys.exit(f"{name} knows a path of this machine")
        if b"facebook/folly" in text and b"Apache License" not in text[:text.index(b"#pragma once")]:
            sys.exit(f"{name} has code of folly, and not its licence")
        for door in re.findall(rb"^// ---+ gradus/(\S+\.hpp)", text, re.M):
            first = open(os.path.join(root, "include", "gradus", door.decode()), "rb").readline()
            if first.startswith(b"//") and first not in text:
                sys.exit(f"{name} lacks the first comment of {door.decode()}")
        read = must(compiler, "-std=c++20", "-M", os.path.join(one, name))
        foreign = re.findall(r"\S*/(?:protozero|xsimd|xtensor|xtl|cereal|nlohmann|stb)/\S+|\S*/zlib\.h", read)
        if foreign or "/gradus/" in read.replace(one, ""):
            sys.exit(f"{name} needs more than the standard library: {foreign or read[:2000]}")

    everything = folder_of(os.path.join(one, "gradus.hpp"), os.path.join(scratch, "all"))
    must(compiler, "-std=c++20", "-fsyntax-only", "-I" + everything, os.path.join(root, "examples", "quickstart.cpp"))

    # The same bits. protozero is inside, so the folder is told that it is there.
    main = write(os.path.join(scratch, "main.cpp"), MAIN)
    model = "-I" + os.path.join(root, "tests", "odr")
    losses = []
    for include in (everything, os.path.join(root, "include")) if long else ():
        program = os.path.join(scratch, "program")
        must(compiler, *FLAGS, "-Wall", "-Wextra", "-Werror", "-DGRADUS_PROTOZERO=1", model, "-I" + include, main, "-o", program,
             "-pthread")
        losses.append(must(program))
    if long and (losses[0] != losses[1] or not losses[0].startswith("0x")):
        sys.exit(f"one file and the folder train differently: {losses}")

    # README's first program, on a few digits and for a few steps.
    if long:
        data, said = os.path.join(scratch, "digits"), []
        draws_digits(data)
        text = open(os.path.join(root, "examples", "quickstart.cpp"), encoding="utf-8").read()
        for old, new in (("runs/digits-data/drawn-20000-4000", data), ("runs/quickstart", os.path.join(scratch, "run")),
                         (".max_steps = 2000", ".max_steps = 60"), (".batch(1000)", ".batch(100)")):
            if old not in text:
                sys.exit(f"quickstart.cpp does not say \"{old}\" any more")
            text = text.replace(old, new)
        source = write(os.path.join(scratch, "thirty.cpp"), text)
        for include in (everything, os.path.join(root, "include")):
            program = os.path.join(scratch, "program")
            shutil.rmtree(os.path.join(scratch, "run"), ignore_errors=True)
            must(compiler, *FLAGS, "-DGRADUS_PROTOZERO=1", "-I" + include, source, "-o", program, "-pthread")
            said.append(re.search(r"^accuracy .*$", must(program), re.M))
        if not said[0] or not said[1] or said[0].group() != said[1].group():
            sys.exit(f"README's program prints something else from one file: {said}")

    edge = folder_of(os.path.join(one, "gradus_edge.hpp"), os.path.join(scratch, "edge"))
    # interpret.cpp has a stepper on the heap, which is in gradus.hpp alone.
    programs = sorted((edge, p) for p in glob.glob(os.path.join(root, "tests", "edge", "*.cpp"))
                      if os.path.basename(p) != "interpret.cpp")
    if not long:
        programs = [programs[draw % len(programs)]]
    else:
        programs.append((everything, os.path.join(root, "tests", "edge", "interpret.cpp")))
    few = os.path.join(scratch, "few")  # what lenet.cpp reads
    os.makedirs(few)
    must(compiler, *FLAGS, "-I" + os.path.join(root, "include"),
         os.path.join(root, "tests", "edge", "board", "digits_file.cpp"), "-o", os.path.join(scratch, "digits_file"))
    must(os.path.join(scratch, "digits_file"), os.path.join(few, "digits.bin"), "20", "20")
    for one_file, source in programs:
        said = []
        for include in (one_file, os.path.join(root, "include")):
            program = os.path.join(scratch, "program")
            must(compiler, *FLAGS, "-fno-exceptions", "-fno-rtti", "-I" + include, source, "-o", program, "-pthread")
            said.append(must(program, cwd=few))
        if said[0] != said[1] or not said[0]:
            sys.exit(f"{source} prints something else from one file:\n{said[0]}\n{said[1]}")

    # A program as one text: nothing else is on the compiler's way, and it prints the same.
    source, said = os.path.join(root, "examples", "xor_edge", "main.cpp"), []
    must(sys.executable, os.path.join(root, "tools", "single_header"), scratch, "--program", source)
    for what in ([os.path.join(scratch, "main.cpp")], ["-I" + os.path.join(root, "include"), source]):
        must(compiler, *FLAGS, *what, "-o", os.path.join(scratch, "program"), "-pthread")
        said.append(must(os.path.join(scratch, "program")))
    if said[0] != said[1] or "1 xor 0" not in said[0]:
        sys.exit(f"{source} prints something else as one text:\n{said[0]}\n{said[1]}")

    # Refused, and the first thing said is why.
    refusals = {
        "only one of them": ('#include "gradus.hpp"\n#include "gradus/base/error.hpp"\n', []),
        "include only one of them": ('#include "gradus/base/error.hpp"\n#include "gradus_edge.hpp"\n', []),
        "gradus.hpp and other headers": ('#include "gradus_edge.hpp"\n#include "gradus.hpp"\n', []),
        "compile without GRADUS_COMPILED": ('#include "gradus_edge.hpp"\n', ["-DGRADUS_COMPILED"]),
    }
    for words, (text, flags) in refusals.items():
        source = write(os.path.join(scratch, "refused.cpp"), text + "int main() {}\n")
        done = run(compiler, "-std=c++20", "-fsyntax-only", *flags, "-I" + one, "-I" + os.path.join(root, "include"), source)
        first = next((l for l in done.stdout.splitlines() if "error:" in l), "")
        if done.returncode == 0 or words not in first or done.stdout.count("error:") > 3:
            sys.exit(f"expected a refusal that says \"{words}\", got {done.stdout[:2000] or 'none'}")
print("one file: the same bytes, the same bits")
