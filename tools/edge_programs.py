#!/usr/bin/env python3
"""Writes the table of docs/edge.md that says what programs of tests/edge take on a board: flash and ram of the images in a
build, and the instructions of a step, which qemu counts.

    tools/edge_programs.py build/g++             writes (the targets edge_*_m4f and edge_*_m3 have to be built)
    tools/edge_programs.py build/g++ --check     tells whether the page is current: flash and ram are measured again, and
                                                 the instructions on the page lie within 5 % below the program's budget

A program is in the table if its source has a line
    // table: what it is | its policies"""
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/g++").resolve() / "tests/edge"
check = "--check" in sys.argv
page = root / "docs/edge.md"
begin, end = "<!-- made by tools/edge_programs.py -->\n", "<!-- end of programs -->\n"
text = page.read_text()
a, b = text.index(begin) + len(begin), text.index(end)
on_page = {m[1]: m[2] for m in re.finditer(r"^\| `(\w+)\.cpp`.*\| ([\d.]+ [KM]) \|$", text[a:b], re.M)}


def sizes(name, board):
    image = build / f"{name}_{board}.elf"
    if not image.exists():
        sys.exit(f"{image} is not there: build the target edge_{name}_{board} first")
    said = subprocess.run(["arm-none-eabi-size", image], capture_output=True, text=True, check=True).stdout.split("\n")[1]
    code, data, bss = (int(n) for n in said.split()[:3])
    return code + data, data + bss


def instructions(name):
    said = subprocess.run(["qemu-system-arm", "-M", "mps2-an386", "-semihosting-config", "enable=on,target=native", "-display",
                           "none", "-serial", "none", "-monitor", "none", "-icount", "shift=0", "-kernel",
                           build / f"{name}_m4f.elf"], capture_output=True, text=True, cwd=build / "few", timeout=1800)
    return max(int(n, 16) for n in re.findall(r"^# instructions (\w+)$", said.stdout + said.stderr, re.M))


def written(n):
    return f"{n / 1e6:.2f} M" if n >= 1e5 else f"{n / 1e3:.1f} K"


def value(words):
    number, unit = words.split()
    return float(number) * {"K": 1e3, "M": 1e6}[unit]


table, wrong = "| program | policies | flash, M4F | flash, M3 | ram | instructions |\n|---|---|--:|--:|--:|--:|\n", []
rows = []
for file in (root / "tests/edge").glob("*.cpp"):
    source = file.read_text()
    if line := re.search(r"^// table: (.*) \| (.*)$", source, re.M):
        name = file.stem
        (flash, ram), (flash_m3, _) = sizes(name, "m4f"), sizes(name, "m3")
        if check:
            count = on_page.get(name, "0 K")
            budget = int(re.search(r"^// instructions at most: *(\d+)", source, re.M)[1])
            if not budget / 1.05 <= value(count) <= budget * 1.005:
                wrong.append(f"{name}: {count} instructions on the page, at most {budget} in its source")
        else:
            count = written(instructions(name))
        rows.append((flash, f"| `{name}.cpp`, {line[1]} | {line[2]} | {flash / 1000:.1f} KB | {flash_m3 / 1000:.1f} KB | "
                            f"{ram / 1000:.1f} KB | {count} |\n"))
table += "".join(row for _, row in sorted(rows))
new = text[:a] + table + text[b:]
if check:
    if new != text:
        wrong.append("docs/edge.md: the table of programs is not current; run tools/edge_programs.py BUILD")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    sys.exit(1 if wrong else 0)
page.write_text(new)
print(table, end="")
