#!/usr/bin/env python3
"""Formats every C++ file of the repository, or says which are not.

    tools/format.py [CLANG_FORMAT]             writes
    tools/format.py --check [CLANG_FORMAT]     only looks

The version is part of the rule: clang-format 16."""
import os
import subprocess
import sys

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
check = "--check" in sys.argv
rest = [a for a in sys.argv[1:] if a != "--check"]
tool = rest[0] if rest else "clang-format-16"
files = []
for top in ("include", "tests", "examples", "benchmarks"):
    for folder, _, names in os.walk(os.path.join(root, top)):
        files += [os.path.join(folder, n) for n in names if n.endswith((".hpp", ".ipp", ".cpp"))]
version = subprocess.run([tool, "--version"], capture_output=True, text=True).stdout
if " 16." not in version:
    sys.exit(f"expected clang-format 16, found: {version.strip()}; install clang-format-16")
if check:  # one process for all: a process for each file takes 20 times as long
    said = subprocess.run([tool, "--dry-run", "--Werror", *sorted(files)], capture_output=True, text=True)
    bad = sorted({os.path.relpath(line.split(":")[0], root) for line in said.stderr.splitlines()
                  if "[-Wclang-format-violations]" in line})
    for file in bad:
        print(f"{file}: not formatted; run tools/format.py")
    print(f"{len(files)} files, {len(bad)} not formatted")
    if said.returncode != 0 and not bad:
        print(said.stderr)
    sys.exit(1 if said.returncode != 0 else 0)
if files:
    subprocess.run([tool, "-i", *sorted(files)], check=True)
print(f"{len(files)} files formatted")
