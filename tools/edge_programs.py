#!/usr/bin/env python3
"""Writes the table of docs/edge.md that says what programs of tests/edge take on a board: flash and ram of the images in a
build, the stack, and the instructions of a step, which qemu counts; and, under "What it costs", the table of train.cpp with -Os and
-O3 and the sentence about layers.cpp.

    tools/edge_programs.py build/g++             writes (the targets edge_*_m4f, edge_*_m3 and edge_train_*_O3 have to be built)
    tools/edge_programs.py build/g++ --check     tells whether the page is current, within 3 % (compilers differ): flash and
                                                 ram are measured again where there is an image, and stack and instructions on the page are those
                                                 that the program's budgets allow; a build of a sample may lack all images but
                                                 train.cpp's

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
on_page = {}
for line in text[a:b].splitlines()[2:]:
    _, program, policies, *numbers, _ = (cell.strip() for cell in line.split("|"))
    on_page[program.split("`")[1][:-4]] = (program, policies, *numbers)


def sizes(name, board):
    image = build / f"{name}_{board}.elf"
    if check and name != "train" and not image.exists():
        return None, None
    if not image.exists():
        sys.exit(f"{image} is not there: build the target edge_{name}_{board} first")
    said = subprocess.run(["arm-none-eabi-size", image], capture_output=True, text=True, check=True).stdout.split("\n")[1]
    code, data, bss = (int(n) for n in said.split()[:3])
    return code + data, data + bss


def instructions_and_stack(name):
    said = subprocess.run(["qemu-system-arm", "-M", "mps2-an386", "-semihosting-config", "enable=on,target=native", "-display",
                           "none", "-serial", "none", "-monitor", "none", "-icount", "shift=0", "-kernel",
                           build / f"{name}_m4f.elf"], capture_output=True, text=True, cwd=build / "few", timeout=1800)
    said = said.stdout + said.stderr
    return (max(int(n, 16) for n in re.findall(rf"^# {what} (\w+)$", said, re.M)) for what in ("instructions", "stack"))


def written(n):
    return f"{n / 1e6:.2f} M" if n >= 1e5 else f"{n / 1e3:.1f} K"


def value(words):
    number, unit = words.split()
    return float(number) * {"K": 1e3, "M": 1e6}[unit]


# Estimates, not measurements; docs/edge.md states what is assumed.
def estimates(count):
    cycles = 1.5 * count
    return f"{cycles / 100e6 * 1000:.3g} ms", f"{cycles * 0.33e-9 * 1e3:.2g} mJ"


def near(words, bytes_now):
    return bytes_now is None or abs(float(words.split()[0]) * 1000 - bytes_now) <= max(0.03 * bytes_now, 100)


# What stands under "What it costs": pieces of text, with bytes between them (None where a build of a sample has no image).
def what_it_costs():
    table = ["| | flash, `-Os` | flash, `-O3` | ram |\n|---|---|---|---|\n"]
    for said, board in (("Cortex-M4F", "m4f"), ("Cortex-M3 (no FPU)", "m3")):
        small, ram = sizes("train", board)
        fast, _ = sizes("train", f"{board}_O3")
        table += [f"| {said} | ", small, " | ", fast, " | ", ram, " |\n"]
    yield "train", table
    yield "layers", ["`tests/edge/layers.cpp` (embedding, layer_norm, batch_norm, gelu, dropout, softmax loss, clip, average, a metric; two "
                     "dense layers) takes ", sizes("layers", "m4f")[0], " of flash on the M4F and ",
                     sizes("layers", "m3")[0], " on the M3.\n"]


def costs_place(name):
    begins = f"<!-- made by tools/edge_programs.py: {name} -->\n"
    c = text.index(begins) + len(begins)
    return c, text.index(f"<!-- end of {name} -->\n", c)


def current(pieces, there):
    """Whether the page's text has these pieces, and sizes near these bytes."""
    pattern = "".join(re.escape(p) if isinstance(p, str) else r"(\d+\.\d KB)" for p in pieces)
    found = re.fullmatch(pattern, there)
    return found and all(map(near, found.groups(), (p for p in pieces if not isinstance(p, str))))


rows, wrong = [], []
for file in sorted((root / "tests/edge").glob("*.cpp")):
    source = file.read_text()
    if line := re.search(r"^// table: (.*) \| (.*)$", source, re.M):
        name = file.stem
        (flash, ram), (flash_m3, _) = sizes(name, "m4f"), sizes(name, "m3")
        said = (f"`{name}.cpp`, {line[1]}", line[2])
        if not check:
            count, stack = instructions_and_stack(name)
            steps = written(count)
            sizes_said = (f"{n / 1000:.1f} KB" for n in (flash, flash_m3, ram, stack))
            rows.append((flash, [*said, *sizes_said, steps, *estimates(value(steps))]))
            continue
        row = on_page.pop(name, None)
        budget, stack = (int(re.search(rf"^// {what} at most: *(\d+)", source, re.M)[1]) for what in ("instructions", "stack"))
        if (not row or row[:2] != said or not all(map(near, row[2:5], (flash, flash_m3, ram)))
                or not near(row[5], stack / 1.015) or not budget / 1.05 <= value(row[6]) <= budget):
            wrong.append(f"docs/edge.md: expected {name}.cpp with {flash}, {flash_m3} and {ram} bytes, at most {stack} "
                         f"of stack and {budget} instructions, it has {row}; run tools/edge_programs.py BUILD")
if check:
    wrong += [f"docs/edge.md: {name}.cpp says nothing of a table, and is in it" for name in on_page]
    for name, pieces in what_it_costs():
        c, d = costs_place(name)
        if not current(pieces, text[c:d]):
            expected = "".join(p if isinstance(p, str) else "(not built) KB" if p is None else f"{p / 1000:.1f} KB" for p in pieces)
            wrong.append(f"docs/edge.md: expected, within 3 %:\n{expected}it has:\n{text[c:d]}run tools/edge_programs.py BUILD")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    sys.exit(1 if wrong else 0)
table = "| program | policies | flash, M4F | flash, M3 | ram | stack, M4F | instructions | time, estimate | energy, estimate |\n"
table += "|---|---|--:|--:|--:|--:|--:|--:|--:|\n"
table += "".join("| " + " | ".join(cells) + " |\n" for _, cells in sorted(rows))
text = text[:a] + table + text[b:]
for name, pieces in what_it_costs():
    c, d = costs_place(name)
    text = text[:c] + "".join(p if isinstance(p, str) else f"{p / 1000:.1f} KB" for p in pieces) + text[d:]
page.write_text(text)
print(table, end="")
