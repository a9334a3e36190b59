#!/usr/bin/env python3
"""Says which files of the tests' rooms can be built for another machine: paths below tests/, one a line.

    candidates.py PROJECT [--big-endian] ROOM...

Left out are files that need what is not there, or too long: those whose first lines ask for something ("// needs:",
"// runs:", "// compiled with:", "// costs:"); those that read zlib's data, since only this machine's zlib is installed;
those that start programs of bin/, which are this machine's; those that read cpu/device.hpp, the interpreter with every
kernel, and compile three times as long as the others (tests/edge/interpret.cpp has all of it on each machine). With
--big-endian also those whose headers refuse such a machine: checkpoints and records hold numbers as memory does."""
import os
import re
import sys

project, *rooms = sys.argv[1:]
big_endian = "--big-endian" in rooms
rooms = [room for room in rooms if not room.startswith("--")]
include = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)
asks = re.compile(r"^// (needs|runs|compiled with|costs): ", re.M)
refuses_big_endian = re.compile(r"^static_assert\(std::endian::native == std::endian::little", re.M)
texts, includes = {}, {}


def read(path):
    if path not in texts:
        with open(path, encoding="utf-8") as file:
            texts[path] = file.read()
        found = []
        for name in include.findall(texts[path]):
            for folder in (os.path.dirname(path), f"{project}/include", f"{project}/tests"):
                at = os.path.normpath(f"{folder}/{name}")
                if os.path.isfile(at):
                    found.append(at)
                    break
        includes[path] = found
    return texts[path]


def reached(path):
    seen, open_ones = {path}, [path]
    while open_ones:
        at = open_ones.pop()
        read(at)
        for other in includes[at]:
            if other not in seen:
                seen.add(other)
                open_ones.append(other)
    return seen


def fits(path):
    own = [read(p) for p in reached(path) if p.startswith(f"{project}/tests/")]
    if any(asks.search(text) or re.search("zlib|ZLIB|inflate|GRADUS_BIN", text) for text in own):
        return False
    all_read = reached(path)
    if f"{project}/include/gradus/cpu/device.hpp" in all_read:
        return False
    return not (big_endian and any(refuses_big_endian.search(read(p)) for p in all_read))


for room in rooms:
    for folder, folders, files in os.walk(f"{project}/tests/{room}"):
        folders.sort()
        for file in sorted(files):
            if file.endswith(".cpp") and fits(f"{folder}/{file}"):
                print(os.path.relpath(f"{folder}/{file}", f"{project}/tests"))
