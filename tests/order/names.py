#!/usr/bin/env python3
"""names.py COMPILER INCLUDE [--list]: which plain words `using namespace gradus` brings into a program.

A word that stands in namespace gradus itself is ambiguous with a variable, type or function that the program calls the
same. So a name of one word there is one that users type, and stands in names.txt; everything else is in a namespace of its
own (gradus::detail) or has a name of two words or more. What there is comes from the compiler (clang). Returns 1 for a word
that is not in the list, or one of the list that is no more there. --list prints what there is."""
import os
import re
import subprocess
import sys
import tempfile

compiler, include = sys.argv[1:3]
here = os.path.dirname(os.path.abspath(__file__))
headers = ["gradus", "data", "rules", "schedules", "codecs"]
declarations = {"NamespaceDecl", "CXXRecordDecl", "ClassTemplateDecl", "EnumDecl", "ConceptDecl", "FunctionDecl",
                "FunctionTemplateDecl", "VarDecl", "VarTemplateDecl", "TypeAliasDecl", "TypedefDecl",
                "TypeAliasTemplateDecl", "UsingDecl", "NamespaceAliasDecl"}
besides = {"used", "referenced", "implicit", "constexpr", "invalid", "class", "struct", "union", "inline", "prev", "parent"}


# What a program calls its own, beside `using namespace gradus`: words of kernels, of passes and of pipelines.
words_of_a_program = """
lane pack kernel call plan program machine signature work division stage seq fixed dynamic typed before follow
observe both either buffer pool block mapping cached filtered grouped mapped repeated shuffled skipped taken
""".split()


def own_words():
    uses = " + ".join(words_of_a_program)
    own = "".join(f"int {w} = 1;\n" for w in words_of_a_program)
    return f"using namespace gradus;\n{own}int sum_of_words() {{ return {uses}; }}\n"


def name_in(line):
    """The name that a line of clang's dump declares: the first word that is no address, place or property."""
    rest = re.sub(r"<[^<>]*(<[^<>]*>[^<>]*)*>", " ", line.split("'")[0])
    for word in (w.split("::")[-1] for w in rest.split()[1:]):
        if re.fullmatch(r"[A-Za-z_]\w*", word) and word not in besides and not re.fullmatch(r"0x[0-9a-f]+", word):
            return word
    return ""


def members():
    """Of namespace gradus: those declared in it directly, in the inline namespace of the build, or in an inline one there."""
    found, inside, build, inner = set(), False, False, False
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "all.cpp")
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(f"#include <gradus/{h}.hpp>\n" for h in headers) + own_words())
        command = [compiler, "-std=c++20", "-fsyntax-only", "-fno-color-diagnostics", "-I", include, "-Xclang", "-ast-dump",
                   "-Xclang", "-ast-dump-filter=gradus", path]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as dump:
            for line in dump.stdout:
                if line.startswith("Dumping "):
                    inside = line.strip() == "Dumping gradus:"
                elif inside and line[:2] in ("|-", "`-"):
                    build = line[2:].startswith("NamespaceDecl") and " inline" in line
                    if not build and line[2:].split(" ", 1)[0] in declarations:
                        found.add(name_in(line[2:]))
                elif inside and build and line[2:4] in ("|-", "`-"):
                    inner = line[4:].startswith("NamespaceDecl") and " inline" in line
                    if not inner and line[4:].split(" ", 1)[0] in declarations:
                        found.add(name_in(line[4:]))
                elif inside and build and inner and line[4:6] in ("|-", "`-") and line[6:].split(" ", 1)[0] in declarations:
                    found.add(name_in(line[6:]))
    if dump.returncode != 0 or len(found) < 100:
        sys.exit(f"{compiler} returned {dump.returncode} and listed {len(found)} names")
    return found


words = sorted(n for n in members() if n and "_" not in n)
if "--list" in sys.argv:
    print(*words, sep="\n")
    sys.exit(0)
with open(os.path.join(here, "names.txt"), encoding="utf-8") as file:
    listed = {w for line in file for w in line.split("#")[0].split()}
strange, gone = [w for w in words if w not in listed], sorted(listed - set(words))
for w in strange:
    print(f"gradus::{w} takes the word `{w}` from every program that says `using namespace gradus`: move it into "
          "gradus::detail, give it a name of two words, or, if users type it, add it to tests/order/names.txt")
for w in gone:
    print(f"tests/order/names.txt has {w}, which gradus does not declare")
print(f"{len(words)} plain words in namespace gradus")
sys.exit(1 if strange or gone else 0)
