#!/usr/bin/env python3
"""Holds the tables of TensorFlow's names in docs/from-tensorflow.md to the headers.

    tools/tensorflow_names.py               checks; prints what is wrong, by line
    tools/tensorflow_names.py --self-test   shows that it sees a name, a header and a row that are wrong

A table has the columns TensorFlow, here, header, difference. Every header of a row exists below include/gradus, and every
identifier in the code of its column "here" is declared in one of them: as a function, a type, a variable, a field or an
enumerator, comments and literals apart. A row without a name of ours says why in the last column. tests/docs/seed_names.txt
lists the names that the pages hold from which people come; each is in the column TensorFlow of some row."""
import functools
import os
import re
import sys

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
page = "docs/from-tensorflow.md"
HEAD = ["TensorFlow", "here", "header", "difference"]
NO_DECLARATION = {"return", "throw", "else", "case", "new", "goto", "co_return", "co_yield", "delete", "and", "or", "not"}
WORDS = {"true", "false", "const", "auto", "float", "double", "int", "bool", "std", "string", "gradus", "this", "nullptr", "span", "nullopt",
         "vector", "function", "exit", "exception_ptr", "ref", "size_t", "int64_t", "array", "map"}


@functools.lru_cache(maxsize=None)
def code_of(header):
    """The text of a header and what its bodies' file adds, without comments and literals; None if there is no such file."""
    path = os.path.join(root, "include/gradus", header)
    if not os.path.isfile(path):
        return None
    text = open(path, encoding="utf-8").read()
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def declares(code, name):
    """A namespace; or behind a type or a keyword of a declaration, and not behind a word that begins an expression; or among enumerators."""
    if re.search(rf"\bnamespace\b[^;{{}}]*\b{name}\b", code):
        return True
    for found in re.finditer(rf"(?<![\w.]){name}\b(?=\s*(?:[({{;=,\[)}}<:]|$))", code, re.M):
        if code[found.end():].lstrip().startswith("::"):
            continue
        before = code[:found.start()].rstrip()
        if before.endswith("->") or before.endswith("::"):
            continue
        word = re.search(r"(\w+)$", before)
        if word and word[1] not in NO_DECLARATION:
            return True
        if re.search(r"[>\]]$|[\w>\]]\s*[&*]+$", before) and not before.endswith("->"):
            return True
        if re.search(r"\b(?:enum|using|struct|class|concept)\b[^;{}]*\{(?:[^{};]*,)?$", before):  # an enumerator
            return True
        if re.search(r"\w[^;(){}]*[=\w\"],$", before):  # `bool stop = false, joined`
            return True
    return False


def problems_of(text, wanted=()):
    problems, rows, known = [], 0, set()
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.startswith("|") or re.fullmatch(r"[|:\- ]+", line):
            continue
        cells = [c.strip() for c in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if cells == HEAD or not in_table(lines, number):
            continue
        if len(cells) != 4:
            problems.append(f"{page}:{number}: {len(cells)} columns, and a row has {', '.join(HEAD)}")
            continue
        rows += 1
        for code in re.findall(r"`([^`]+)`", cells[0]):
            known.update(re.findall(r"[A-Za-z_]\w*(?:\.\w+)*", code))
        headers = re.findall(r"`([^`]+)`", cells[2])
        names = {n for code in re.findall(r"`([^`]+)`", re.sub(r"\[[^\]]*\]\([^)]*\)", "", cells[1]))
                 for n in re.findall(r"(?<![\w\"])[A-Za-z_]\w*(?!\w*\")", re.sub(r'"[^"]*"', '""', code))} - WORDS
        missing = [h for h in headers if code_of(h) is None]
        problems += [f"{page}:{number}: there is no header {h}" for h in missing]
        if names and not headers:
            problems.append(f"{page}:{number}: {', '.join(sorted(names))} without a header")
        if not names and not cells[3]:
            problems.append(f"{page}:{number}: nothing of ours, and no reason")
        if names and headers and not missing:
            code = "\n".join(code_of(h) for h in headers)
            for name in sorted(names):
                if not declares(code, name):
                    problems.append(f"{page}:{number}: {name} is not declared in {', '.join(headers)}")
    for name in wanted:
        if name not in known:
            problems.append(f"{page}: no row for {name}")
    return rows, problems


def in_table(lines, number):
    at = number - 1
    while at >= 0 and lines[at].startswith("|"):
        at -= 1
    return [c.strip() for c in lines[at + 1].strip().strip("|").split("|")] == HEAD


def self_test():
    head = "| " + " | ".join(HEAD) + " |\n|---|---|---|---|\n"
    good = head + "| `tf.train.Coordinator.join` | `coordinator::join` | `session/coordinator.hpp` | |\n"
    bad = {"is not declared": good.replace("::join`", "::joyn`"), "no header": good.replace("coordinator.hpp", "coordination.hpp"),
           "without a header": good.replace("`session/coordinator.hpp`", ""), "no reason": good.replace("`coordinator::join`", ""),
           "columns": good.replace("`session/coordinator.hpp` | |", "`session/coordinator.hpp` |"), "no row": good.replace("Coordinator.join", "Other")}
    if problems_of(good, ["tf.train.Coordinator.join"])[1]:
        sys.exit(f"a good row is refused: {problems_of(good)[1]}")
    for words, text in bad.items():
        found = problems_of(text, ["tf.train.Coordinator.join"])[1]
        if not any(words in p for p in found):
            sys.exit(f"\"{words}\" was expected, and it says {found}")
    # What is used, or stands in a comment, is not declared.
    code = "void f() { return g(1); a.h(2); x->k(3); }\nstruct s {\n  int m = 0;\n  bool n(int p) const;\n  enum e { first, second };\n};"
    for name, declared in {"f": 1, "g": 0, "h": 0, "k": 0, "m": 1, "n": 1, "s": 1, "first": 1, "second": 1, "q": 0}.items():
        if declares(code, name) != bool(declared):
            sys.exit(f"{name}: declared is {not declared}")
    print("sees what is wrong")


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    else:
        with open(os.path.join(root, "tests/docs/seed_names.txt"), encoding="utf-8") as file:
            wanted = [w for w in (line.strip() for line in file) if w and not w.startswith("#")]
        rows, found = problems_of(open(os.path.join(root, page), encoding="utf-8").read(), wanted)
        print(f"{rows} rows, {len(wanted)} names wanted")
        sys.exit("\n".join(found) or None)
