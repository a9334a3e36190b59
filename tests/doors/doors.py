#!/usr/bin/env python3
"""doors.py COMPILER INCLUDE WAY: what a program is without optional libraries, and with them.

    bare   no macro, and a path whose zlib.h, protozero and stb are #errors: compiles, links without -lz, and refuses
           compressed data, event files and pictures by a sentence that names the macro and the target
    lying  no macro, and the libraries' real headers on the path: the compiler is given the same text as in `bare`
    whole  the macros, the headers and -lz: all of it works
    forms  with GRADUS_COMPILED a door has what a program names beside it (rules, schedules, ops, columns, hooks, stages and
           readers of input) as it has without: no such header comes with the bodies alone; and a program's own file has
           no code that the library has (what cards of ops point to, shared parts of products)"""
import gzip
import os
import re
import subprocess
import sys
import tempfile

compiler, include, way = sys.argv[1:]
here = os.path.dirname(os.path.abspath(__file__))
source = os.path.join(here, "main.cpp")
common = [*compiler.split(), "-std=c++20", "-O0", "-DGRADUS_INLINE=inline", "-I", include]
refused = {  # by its name in the program: words that must be said
    "read gz": ("unimplemented", "data.idx.gz", "zlib", "gradus::gradus", "-DGRADUS_ZLIB", "-lz"),
    "stream gz": ("unimplemented", "data.idx.gz", "zlib", "gradus::gradus", "-DGRADUS_ZLIB", "-lz"),
    "write gz": ("unimplemented", ".gz", "zlib", "gradus::gradus", "-DGRADUS_ZLIB", "-lz"),
    "event file": ("unimplemented", "event file", "protozero", "gradus::gradus", "-DGRADUS_PROTOZERO"),
    "train": ("unimplemented", "event file", "trained", "GRADUS_PROTOZERO", "save_summary_steps = 0"),
    "monitor": ("unimplemented", "event file", "monitored", "GRADUS_PROTOZERO", "save_summaries_steps = none",
                "log_step_count_steps = 0"),
    "png": ("unimplemented", "PNG", "stb", "gradus::gradus", "-DGRADUS_STB"),
}
works = ("write plain", "checkpoint", "train without summaries", "estimate without summaries",
         "monitor without summaries")


NAMED = ("columns/", "cpu/device.hpp", "estimator/canned/", "estimator/regression_head", "ops/", "train/hooks/", "update/rules/",
         "update/schedules/")


def headers_of(door, *flags):
    source = f"#include <gradus/{door}.hpp>\n"
    words = subprocess.run([*common, *flags, "-M", "-xc++", "-"], input=source, stdout=subprocess.PIPE, text=True, check=True)
    root = os.path.join(os.path.realpath(include), "gradus")
    paths = {os.path.realpath(w) for w in words.stdout.split() if w.endswith(".hpp")}
    return {os.path.relpath(p, root) for p in paths if p.startswith(root + os.sep)}


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} returned {done.returncode}:\n{done.stdout[:4000]}")
    return done.stdout


if way == "forms":
    problems = []
    doors = sorted(f[:-4] for f in os.listdir(os.path.join(include, "gradus")) if f.endswith(".hpp"))
    for door in doors:
        more = headers_of(door) - headers_of(door, "-DGRADUS_COMPILED")
        problems += [f"gradus/{door}.hpp has {h} without GRADUS_COMPILED alone" for h in sorted(more) if h.startswith(NAMED)]
    with tempfile.TemporaryDirectory() as scratch:
        own = os.path.join(scratch, "own.o")
        run([*common, "-DGRADUS_COMPILED", "-c", os.path.join(here, "..", "..", "examples", "quickstart.cpp"), "-o", own])
        symbols = run(["nm", "-C", "--defined-only", own]).splitlines()
        problems += [f"a program's own file has {s.split(' ', 2)[2][:200]}" for s in symbols
                     if re.search(r"::detail::(infer|grad|lower)_\w+\(|few_rows<(float|double), [^>]*fast>::(panels|sums|all_panels)<|"
                                  r"vector_products<(float|double), [^>]*fast>::(add_rows|chains|trees_across|trees_along)\b|"
                                  r"::shared_dots<|::initialize_variable\(", s)]
        if not any("::train" in s for s in symbols):
            problems.append("the symbols of a program's own file were not read")
    print("\n".join(problems) or f"{len(doors)} doors have the same in both forms")
    sys.exit(bool(problems))

with tempfile.TemporaryDirectory() as scratch:
    poison = os.path.join(scratch, "poison")
    for header in ("zlib.h", "zconf.h", "protozero/basic_pbf_writer.hpp", "protozero/exception.hpp",
                   "protozero/varint.hpp", "protozero/pbf_reader.hpp", "stb/stb_image_write.h", "stb_image_write.h"):
        path = os.path.join(poison, header)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'#error "{header} was read, and no macro asked for it"\n')
    program = os.path.join(scratch, "program")
    if way == "lying":
        texts = [run([*common, *path, "-E", "-P", source]) for path in ([], ["-I", poison])]
        if texts[0] != texts[1]:
            sys.exit("headers that lie on the path change what is compiled, without a macro")
        print("the same text, whatever lies on the path")
        sys.exit(0)
    if way == "bare":
        run([*common, "-I", poison, source, "-o", program])
    else:
        run([*common, "-DGRADUS_ZLIB", "-DGRADUS_PROTOZERO", "-DGRADUS_STB", source, "-o", program, "-lz"])
    with gzip.open(os.path.join(scratch, "data.idx.gz"), "wb") as file:
        file.write(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]))
    said = run([program, scratch])
    lines = dict(line.split(": ", 1) for line in said.strip().split("\n"))
    if set(lines) != set(refused) | set(works):
        sys.exit(f"expected {sorted(set(refused) | set(works))}, the program said:\n{said}")
    problems = []
    for name, words in lines.items():
        if way == "bare" and name in refused:
            problems += [f"{name}: does not say '{w}': {words}" for w in refused[name] if w not in words]
        elif words != "ok":
            problems.append(f"{name}: expected ok, the program said: {words}")
    if way == "bare" and os.path.exists(os.path.join(scratch, "run")):
        problems.append("a refused event file left its folder behind")
    print(said)
    if problems:
        sys.exit("\n".join(problems))
