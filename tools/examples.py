#!/usr/bin/env python3
"""Compiles the C++ blocks of README.md and docs/**/*.md, so that what a page shows is what a compiler takes.

    tools/examples.py COMPILER INCLUDE
    tools/examples.py --write FOLDER             programs of the blocks that are run, one for each page and section that has some
    tools/examples.py --run PROGRAM...           runs them, each block in an empty folder, and compares what is printed

A block stands behind a mark, a comment that readers do not see:

    <!-- compiled -->                            in a function, behind `using namespace gradus`
    <!-- compiled: given float x, int n -->      the same, of a function with these parameters
    <!-- compiled: goes on from "TEXT" -->       the same, behind the last block before it that holds this text, in braces
    <!-- compiled: no function -->               at namespace scope
    <!-- compiled and run -->                    the same, and the tests build it with warnings and run it (docs/<page>); it
                                                 includes what it uses, and has neither umbrella nor context. Also with
                                                 `: goes on from "TEXT"`, `: no function`, and at the end `, prints "TEXT; TEXT"`:
                                                 what has to be printed, in this order
    <!-- examples/quickstart.cpp -->             a whole program of examples/ (tools/readme.py holds the two together)
    <!-- file: main.cpp -->                      a program of docs/install.md, which tools/roads builds on every road
    <!-- not compiled: WHY; PROGRAM -->          what takes a library that is not always here; PROGRAM, of tests/ or examples/,
                                                 is one that ctest compiles and that does the same; at most six blocks

What a block that is run has to hold beyond ending without an error, it prints. A block without a mark fails. A block has the umbrella, what it includes itself, and tests/docs/context.inc: a model, some
data. Blocks that include the same share a translation unit. Only the front end runs (-fsyntax-only). Five units are
compiled, drawn by the commit; with $GRADUS_LONG all of them."""
import collections
import os
import random
import re
import subprocess
import sys
import tempfile

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
pages = ["README.md"]
for folder, _, names in os.walk(os.path.join(root, "docs")):
    pages += [os.path.relpath(os.path.join(folder, n), root) for n in names if n.endswith(".md")]
problems, units, excused = [], collections.defaultdict(list), 0
programs = {}  # (page, section) -> (includes, blocks): (line, code or, of one outside a function, None, its text, what it prints)
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
            sources = re.findall(r"(?:tests|examples)/[\w/]+\.cpp", mark)
            if not any(os.path.exists(os.path.join(root, s)) for s in sources):
                problems.append(f"{page}:{line}: it is not compiled, and its mark names no program of tests/ or examples/ that is")
            continue
        run = re.fullmatch(r'compiled and run(?:: (goes on from "[^"]+"|no function))?(?:[:,] prints "(.+)")?', mark)
        if run:
            mark = "compiled" + (f": {run[1]}" if run[1] else "")
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
        if run:
            section = len(re.findall(r"^## ", text[:block.start()], re.M))
            program = programs.setdefault((page, section), (set(), []))
            program[0].update(includes)
            program[1].append((page, line, first, code, outside, run[2] or ""))
            if not behind and not outside:
                seen.append((includes, given, code, line))
            continue
        units[includes].append((page, first, None if outside else given[1] or "", code))
        if not behind and not outside:
            seen.append((includes, given, code, line))

if excused > 6:
    problems.append(f"{excused} blocks are not compiled, at most six may be: make them programs or parts of one")
if problems:
    sys.exit("\n".join(problems))
if sys.argv[1] == "--write":
    for (page, section), (includes, blocks) in programs.items():
        source = [f"// Made by tools/examples.py from {page}.", *sorted(includes | {"#include <cstdio>", "#include <exception>", "#include <filesystem>"}),
                  '#pragma GCC diagnostic ignored "-Wunused-variable"', '#pragma GCC diagnostic ignored "-Wunused-but-set-variable"',
                  "using namespace gradus;"]
        calls = []
        for page, line, first, code, outside, _ in blocks:
            if outside:
                source.append(f'#line {line + 1} "{page}"\n{code}')
                continue
            source.append(f'static void block_{line}() {{\n#line {first + 1} "{page}"\n{code}}}')
            calls.append(f"  run({line}, block_{line});")
        source += [f'#line 1 "{page} (calls)"', """static int failed = 0;
static void run(int line, void (*block)()) {
  namespace fs = std::filesystem;
  const fs::path home = fs::current_path(), folder = home / std::to_string(line);
  fs::create_directory(folder), fs::current_path(folder);
  std::printf("\\n@%d\\n", line);
  try {
    block();
  } catch (const std::exception& e) {
    std::printf("\\nraised: %s\\n", e.what()), ++failed;
  }
  std::fflush(stdout);
  fs::current_path(home);
}
int main() {""", *calls, '  std::printf("\\n@0\\n");', "  return failed == 0 ? 0 : 1;", "}"]
        name = re.sub(r"\W+", "_", os.path.splitext(page)[0].removeprefix("docs/"))
        path, content = os.path.join(sys.argv[2], f"{name}_{section}.cpp"), "\n".join(source) + "\n"
        if not os.path.exists(path) or open(path, encoding="utf-8").read() != content:
            with open(path, "w", encoding="utf-8") as file:
                file.write(content)
        print(path)
    sys.exit(0)
if sys.argv[1] == "--run":
    expected, ran = {(page, line): prints for _, blocks in programs.values() for page, line, _, _, outside, prints in blocks if not outside}, 0
    pages_of = {re.sub(r"\W+", "_", os.path.splitext(page)[0].removeprefix("docs/")): page for page, _ in programs}
    for program in sys.argv[2:]:
        page = pages_of[os.path.basename(program).rpartition("_")[0]]
        with tempfile.TemporaryDirectory() as scratch:
            done = subprocess.run([os.path.abspath(program)], cwd=scratch, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        parts = re.split(r"^@(\d+)\n", done.stdout, flags=re.M)
        for line, printed in zip(parts[1::2], parts[2::2]):
            if line == "0":
                continue
            ran += 1
            wanted = expected.get((page, int(line)), "no such block: build again")
            at, found = 0, True
            for piece in wanted.split("; "):
                at = printed.find(piece, at)
                found, at = found and at >= 0, max(at, 0) + len(piece)
            if "\nraised: " in printed or not found:
                problems.append(f"{page}:{line}: it has to print \"{wanted}\", and it says\n{printed.strip()[:2000]}")
        if done.returncode != 0 or parts[-2] != "0":
            problems.append(f"{program} ended with {done.returncode}: {done.stdout[-1000:]}")
    print(f"{ran} blocks ran")
    sys.exit("\n".join(problems) or None)
compiler, include = sys.argv[1:]
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
