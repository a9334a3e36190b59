#!/usr/bin/env python3
"""Compiles the C++ blocks of README.md and docs/**/*.md, so that what a page shows is what a compiler takes.

    tools/examples.py COMPILER INCLUDE

A block stands behind a mark, a comment that readers do not see:

    <!-- compiled -->                            in a function, behind `using namespace gradus`
    <!-- compiled: given float x, int n -->      the same, of a function with these parameters
    <!-- compiled: goes on from "TEXT" -->       the same, behind the last block before it that holds this text, in braces
    <!-- compiled: no function -->               at namespace scope
    <!-- examples/quickstart.cpp -->             a whole program of examples/ (tools/readme.py holds the two together)
    <!-- file: main.cpp -->                      a program of docs/install.md, which tools/roads builds on every road
    <!-- not compiled: WHY -->                   a fragment that is no statement

A block without a mark fails. A block has the umbrella, what it includes itself, and tests/docs/context.inc: a model, some
data. Blocks that include the same share a translation unit. Only the front end runs (-fsyntax-only). Five units are
compiled, drawn by the commit; with $GRADUS_LONG all of them."""
import collections
import os
import random
import re
import subprocess
import sys
import tempfile

compiler, include = sys.argv[1:]
root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
pages = ["README.md"]
for folder, _, names in os.walk(os.path.join(root, "docs")):
    pages += [os.path.relpath(os.path.join(folder, n), root) for n in names if n.endswith(".md")]
problems, units, excused = [], collections.defaultdict(list), 0
for page in sorted(pages):
    text = open(os.path.join(root, page), encoding="utf-8").read()
    seen = []  # (includes, given, code, line) of this page
    for block in re.finditer(r"^```cpp\n(.*?)^```", text, re.S | re.M):
        line = text[:block.start()].count("\n") + 1
        mark = re.search(r"<!-- ([^\n]*?) -->\n$", text[:block.start()])
        mark = mark[1] if mark else ""
        if re.fullmatch(r"examples/\S+\.cpp|file: main\.cpp", mark):
            continue
        if re.fullmatch(r"not compiled: .+", mark):
            excused += 1
            continue
        given = re.fullmatch(r"compiled(?:: given (.+))?", mark)
        behind = re.fullmatch(r'compiled: goes on from "(.+)"', mark)
        if behind:
            before = [b for b in seen if behind[1] in b[2]]
            if not before:
                problems.append(f"{page}:{line}: no block before it holds {behind[1]}")
                continue
            given = before[-1][1]
        outside = mark == "compiled: no function"
        if not given and not outside:
            problems.append(f"{page}:{line}: a block of C++ without a mark (tools/examples.py says which there are)")
            continue
        code = block[1]
        includes = frozenset(re.findall(r"^#include <[^>]+>", code, re.M))
        code = re.sub(r"^#include[^\n]*", "", code, flags=re.M)  # the line stays, so that numbers are the page's
        if behind:
            includes |= before[-1][0]
            code = f'{before[-1][2]}{{\n#line {line + 1} "{page}"\n{code}}}\n'
        first = before[-1][3] if behind else line
        units[includes].append((page, first, None if outside else given[1] or "", code))
        if not behind and not outside:
            seen.append((includes, given, code, line))

chosen = sorted(units.items(), key=lambda u: sorted(u[0]))
if "GRADUS_LONG" not in os.environ and len(chosen) > 5:
    commit = subprocess.run(["git", "-C", root, "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    chosen = random.Random(commit).sample(chosen, 5)
with tempfile.TemporaryDirectory() as scratch:
    for n, (includes, blocks) in enumerate(chosen):
        source = ["#include <gradus/gradus.hpp>", *sorted(includes)]
        source.append(f'#include "{os.path.join(root, "tests/docs/context.inc")}"')
        for k, (page, line, given, code) in enumerate(blocks):
            if given is None:
                source.append(f'#line {line + 1} "{page}"\n{code}')
                continue
            source.append(f"namespace block_{k} {{\n[[maybe_unused]] void example({given}) {{\nusing namespace gradus;")
            source.append(f'#line {line + 1} "{page}"\n{code}}}\n}}')
        path = os.path.join(scratch, f"unit_{n}.cpp")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(source) + "\n")
        done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-DGRADUS_ZLIB", "-DGRADUS_PROTOZERO", "-DGRADUS_STB",
                               "-I", include, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            errors = [e for e in done.stdout.split("\n") if ": error:" in e or ": fatal error:" in e]
            problems += errors[:12] + (["--- " + " ".join(sorted(includes)), done.stdout[:1500]] if errors else [done.stdout[:3000]])
count = sum(len(b) for _, b in chosen)
print(f"{count} blocks in {len(chosen)} of {len(units)} units compiled, {excused} excused")
if problems:
    sys.exit("\n".join(problems))
