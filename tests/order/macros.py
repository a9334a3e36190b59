#!/usr/bin/env python3
"""macros.py COMPILER INCLUDE: vendors' macros, defined before our headers, are harmless or refused by name
(base/foreign_macros.hpp).

    Those of Arduino, X11 and the system, all at once, after <cmath>: every door compiles, and so do other
    headers.
    Each macro that is refused is refused by the first error, which says its name.
    An older standard is refused by the first error, and so is an older compiler, unless the program insists. The older
    compiler is g++ 11 or clang 15 itself where that is on PATH; else this one's number is changed.
    Every single letter that the library's code uses is refused, and so is each vendor's macro below that is a word of it:
    the list is complete."""
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

compiler, include = sys.argv[1], os.path.abspath(sys.argv[2])

HARMLESS = """
PI 3.1415926535897932384626433832795
HALF_PI 1.57
TWO_PI 6.28
DEG_TO_RAD 0.017
EULER 2.718
F(x) (reinterpret_cast<const char*>(x))
min(a, b) ((a) < (b) ? (a) : (b))
max(a, b) ((a) > (b) ? (a) : (b))
abs(x) ((x) > 0 ? (x) : -(x))
round(x) ((x) >= 0 ? (long)((x) + 0.5) : (long)((x)-0.5))
constrain(amt, low, high) ((amt) < (low) ? (low) : ((amt) > (high) ? (high) : (amt)))
radians(deg) ((deg)*DEG_TO_RAD)
degrees(rad) ((rad)*57.3)
sq(x) ((x) * (x))
bit(b) (1UL << (b))
lowByte(w) ((unsigned char)((w)&0xff))
highByte(w) ((unsigned char)((w) >> 8))
bitRead(value, bit) (((value) >> (bit)) & 0x01)
bitSet(value, bit) ((value) |= (1UL << (bit)))
HIGH 0x1
LOW 0x0
INPUT 0x0
OUTPUT 0x1
CHANGE 1
RISING 3
FALLING 2
DEFAULT 1
EXTERNAL 0
SERIAL 0
DISPLAY 1
B0 0
B1 1
B11111111 255
major(x) gnu_dev_major(x)
minor(x) gnu_dev_minor(x)
None 0L
Bool int
Status int
True 1
False 0
Always 2
Success 0
signals public
foreach Q_FOREACH
ERROR 0
IN
OUT
OPTIONAL
TRUE 1
FALSE 0
YES 1
NO 0
Y 1
J 1
Z 1
timeout(x) wtimeout(x)
verify(x) (x)
nil 0
"""
REFUSED = ["slots=", "emit=", "forever=for(;;)", "near=", "far=", "small=char", "word(...)=makeWord(__VA_ARGS__)",
           "check(x)=(x)", "select(x)=pselect(x)", "I=_Complex_I", "N(x)=(x)", "R(x)=(x)", "T(x)=L##x"]
OF_VENDORS = """slots emit forever near far small word check select signals foreach interface verify nil None Bool Status True
False Always Success ERROR IN OUT OPTIONAL TRUE FALSE YES NO PI HIGH LOW INPUT OUTPUT CHANGE DEFAULT EXTERNAL SERIAL DISPLAY
interrupts noInterrupts lowByte highByte bitRead bitSet sq radians degrees DEG_TO_RAD""".split()
failures = []


def compile_text(text, *flags, by=compiler):
    with tempfile.TemporaryDirectory() as scratch:
        source = os.path.join(scratch, "macros.cpp")
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        return subprocess.run([by, "-std=c++20", "-fsyntax-only", "-I", include, *flags, source],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


doors = "".join(f"#include <gradus/{d}.hpp>\n" for d in ("estimator", "gradus", "data", "rules", "schedules", "codecs"))
defined = "".join(f"#define {line}\n" for line in HARMLESS.strip().splitlines())
done = compile_text("#include <cmath>\n" + defined + doors)
if done.returncode != 0:
    failures.append("macros that should be harmless are not:\n" + done.stdout[:3000])

# A header that is included first, which is not a door: three of them, others for every state of the folder.
rooms = os.path.join(include, "gradus")
headers = sorted(os.path.relpath(os.path.join(folder, name), include) for folder, _, names in os.walk(rooms) for name in names
                 if name.endswith(".hpp") and folder != rooms and name not in ("grpc.hpp", "mpi.hpp", "cblas.hpp", "onednn.hpp",
                                                                                                      "xtensor.hpp"))
for header in random.Random("".join(headers)).sample(headers, 3):
    done = compile_text("#include <cmath>\n" + defined + f"#include <{header}>\n", "-w")
    if done.returncode != 0:
        failures.append(f"macros that should be harmless are not, before {header}:\n" + done.stdout[:3000])

# The words of the code: no comments, no texts.
words = set()
for folder, _, names in os.walk(os.path.join(include, "gradus")):
    for name in names:
        if name.endswith((".hpp", ".ipp")) and name not in ("foreign_macros.hpp", "grpc.hpp", "mpi.hpp"):  # words of gRPC and MPI
            text = open(os.path.join(folder, name), encoding="utf-8").read()
            text = re.sub(r'R"(\w*)\((.|\n)*?\)\1"', '""', text)
            text = re.sub(r"//[^\n]*|/\*(.|\n)*?\*/", "", text)
            text = re.sub(r'"(\\.|[^"\\\n])*"|\'(\\.|[^\'\\\n])\'', '""', text)
            words.update(re.findall(r"\b[A-Za-z_]\w*\b", text))
listed = open(os.path.join(include, "gradus", "base", "foreign_macros.hpp"), encoding="utf-8").read()
listed = set(re.findall(r"^GRADUS_NO_MACRO\((\w+)", listed, re.M))
letters = {w for w in words if len(w) == 1 and w.isupper()}
for word in sorted(letters | (words & set(OF_VENDORS)) - listed):
    if word not in listed:
        failures.append(f"{word} is a word of the code, and no line of base/foreign_macros.hpp refuses a macro of that name")
for word in sorted(listed - words):
    failures.append(f"base/foreign_macros.hpp refuses a macro {word}, which is no word of the code")

for macro in REFUSED + [f"{letter}=1" for letter in sorted(listed) if len(letter) == 1]:
    done = compile_text("#include <gradus/base/build.hpp>\n", "-D" + macro)
    first = next((line for line in done.stdout.splitlines() if "error:" in line), "")
    name = re.match(r"\w+", macro)[0]
    if done.returncode == 0 or not re.search(rf"gradus: {name}\b.* is a macro here", first):
        failures.append(f"-D'{macro}' is not refused by name: {done.stdout[:400] or 'it compiles'}")

clang = "clang" in os.path.basename(compiler)
older = shutil.which("clang++-15" if clang else "g++-11")
number = "-U__clang_major__ -D__clang_major__=15" if clang else "-U__GNUC__ -D__GNUC__=11"
OLDER = [(compiler, "-std=c++17", "expected C++20"),
         (older or compiler, "" if older else number, "or newer, found an older one")]
for by, flags, words in OLDER:
    named = f"{by} {flags}".strip()
    done = compile_text("#include <gradus/base/compiler.hpp>\n", "-w", *flags.split(), by=by)
    first = next((line for line in done.stdout.splitlines() if "error:" in line), "")
    if done.returncode == 0 or words not in first:
        failures.append(f"{named}: expected an error that says \"{words}\", found {first or 'none'}")
    done = compile_text("#include <gradus/gradus.hpp>\n", "-w", *flags.split(), by=by)
    if (count := len(re.findall(r"\berror:", done.stdout))) > 3:
        failures.append(f"{named}: {count} errors follow the one that says why")
    if "std" not in flags and compile_text("#include <gradus/base/compiler.hpp>\n", "-w", "-DGRADUS_UNTESTED_COMPILER",
                                           *flags.split(), by=by).returncode:
        failures.append(f"{named}: GRADUS_UNTESTED_COMPILER does not go on")

for f in failures:
    print(f)
sys.exit(1 if failures else 0)
