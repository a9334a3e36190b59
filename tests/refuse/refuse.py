#!/usr/bin/env python3
"""refuse.py COMPILER g++|clang CASE.cpp [FLAGS...]: the case must not compile and must say why; with -DFIX it must.
refuse.py --list FOLDER: at least 25 cases say so within the first 8 lines, whatever the compiler; those of `named` are
among them.

The control (-DFIX) is compiled in long runs (GRADUS_LONG): it changes when a case does, the words when anything does."""
import os
import re
import subprocess
import sys
import tempfile

# The mistakes that were found first, by users; each has to stay in the list. (Components without a dtype, spans in braces
# and an uncaught error are mistakes of a running program: tests/whole/runtime_mistakes.cpp.)
named = """stage_without_its_header updater_without_its_device updater_with_an_arithmetic updater_with_lookahead
updater_with_mixed_precision vary_by_a_number chain_with_a_multi vary_of_the_rate_beside_a_schedule
multi_with_two_owners_of_a_rate""".split()

if sys.argv[1] == "--list":
    folder = sys.argv[2]
    sources = {name: open(os.path.join(folder, name), encoding="utf-8").read() for name in sorted(os.listdir(folder)) if name.endswith(".cpp")}
    soon = [name for name, text in sources.items() if re.search(r"^// within: 8 lines$", text, re.M)]
    soon = [name for name in soon if not re.search(r"^// (within-|only:)", sources[name], re.M)]
    print(f"{len(soon)} of {len(sources)} cases name thing, place and remedy within 8 lines:", *soon, sep="\n  ")
    missing = [name for name in named if name + ".cpp" not in soon]
    if missing:
        sys.exit("these have to be cases with `within: 8 lines` for every compiler: " + ", ".join(missing))
    sys.exit(0 if len(soon) >= 25 else "at least 25 were promised")

compiler, family, case, *flags = sys.argv[1:]
source = open(case, encoding="utf-8").read()
expected = re.findall(r"^// expect: *(.+?) *$", source, re.M)
expected += re.findall(rf"^// expect-{re.escape(family)}: *(.+?) *$", source, re.M)
limit = re.search(r"^// at most: *(\d+) lines", source, re.M)
within = re.search(rf"^// within-{re.escape(family)}: *(\d+) lines", source, re.M)
within = within or re.search(r"^// within: *(\d+) lines", source, re.M)
whole = re.search(r"^// compile:", source, re.M)
for line in re.findall(r"^// compiled with: *(.+?) *$", source, re.M):
    flags += line.split()
if re.search(r"^// .*\S +expect[\w+-]*:", source, re.M):
    sys.exit(f"{case}: an expectation does not begin its line, where the layout tool has folded it; write it shorter")
if not expected:
    sys.exit(f"{case} expects no text: write `// expect: ...`")
if "FIX" not in re.sub(r"//.*", "", source):
    sys.exit(f"{case} has no control: write the mistake under #ifndef FIX or the remedy under #ifdef FIX")


def compile_case(*extra):
    with tempfile.TemporaryDirectory() as folder:
        how = ["-c", "-o", f"{folder}/case.o"] if whole else ["-fsyntax-only"]
        return subprocess.run([compiler, "-std=gnu++20", *how, *flags, *extra, case], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})


def plain(text):
    """Compilers quote with ‘’ or '' after the locale, and break no lines inside a message."""
    return text.replace("‘", "'").replace("’", "'")


refused = compile_case()
printed = plain(refused.stderr)
lines = printed.count("\n")
problems = []
if refused.returncode == 0:
    problems.append("it compiles")
problems += [f"does not say: {text}" for text in expected if plain(text) not in printed]
if limit and lines > int(limit.group(1)):
    problems.append(f"takes {lines} lines, at most {limit.group(1)} were agreed")
if within:
    top = "\n".join(printed.split("\n")[: int(within.group(1))])
    problems += [f"says too late: {text}" for text in expected if plain(text) in printed and plain(text) not in top]
    # As a place, `file:line:column:`; that the case includes a header is no place of a mistake.
    if not re.search(r"^\S*" + re.escape(os.path.basename(case)) + r":\d+:\d+:", top, re.M):
        problems.append(f"the first {within.group(1)} lines do not name a line of {os.path.basename(case)}")
if "internal compiler error" in printed or "PLEASE submit a bug report" in printed:
    problems.append("the compiler crashed")
control = compile_case("-DFIX") if "GRADUS_LONG" in os.environ else None
if control and control.returncode != 0:
    problems.append("the control (-DFIX) does not compile:\n" + control.stderr)

first = next((n for n, line in enumerate(printed.split("\n"), 1) if plain(expected[0]) in line), 0)
print(f"{lines} lines, the first expected text on line {first}")
if problems:
    print(*problems, sep="\n")
    print("--- printed:", printed, sep="\n")
    sys.exit(1)
