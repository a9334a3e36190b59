#!/usr/bin/env python3
"""Writes docs/ops.md: every op, layer, loss and metric that a model's function can call, with its signature, the comment above it and
the settings of its options, read from the headers of ops/; of elementwise ops also the formula of their kernel. With --check, only tells
whether the page is current."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
room = root / "include/gradus/ops"
page = root / "docs/ops.md"
sums = {"reduce_sum"}  # of broadcast.hpp; the rest of it is about shapes
card_of = {"subtract": "sub", "multiply": "mul", "divide": "div"}
sections = [  # title, headers
    ("Elementwise", ["elementwise"]),
    ("Shapes", ["broadcast", "arrange"]),
    ("Sums, means, extremes", ["broadcast", "reduce"]),
    ("Products, convolutions, pools", ["matmul", "conv", "depthwise_conv"]),
    ("Softmax, attention, normalization", ["softmax", "attention", "cached_attention", "layer_norm"]),
    ("Rows of tables", ["gather", "embedding"]),
    ("Random numbers", ["random"]),
    ("Variables", ["state"]),
    ("Clips of tensors and gradients", ["clip"]),
    ("Layers", ["layer"]),
    ("Layers with frozen weights, in headers of their own", ["frozen"]),
    ("Losses", ["loss"]),
    ("Metrics", ["metric"]),
    ("Your own code, checks, precision", ["host", "precision"]),
]
results = r"(?:value|std::array<value, std::size_t\{N\}>|metric|gradient_value|clipped|moments_result)"
marker = "<!-- made by tools/op_table.py from the headers -->\n"


def functions(text):
    """(namespaces, name, arguments, comment) of each function that gives one of `results`, in order, outside detail and cards."""
    spaces, depth, lines, comment, divided, i = [], 0, text.split("\n"), [], False, 0  # spaces: (name, the depth of braces around it)
    while i < len(lines):
        line = lines[i]
        code = re.sub(r'"(?:\\.|[^"\\])*"|//.*', "", line)
        if opened := re.match(r"(?:inline )?namespace (\w+)", code):
            spaces.append((opened[1], depth))
        depth += code.count("{") - code.count("}")
        while spaces and depth <= spaces[-1][1]:
            spaces.pop()
        if line.startswith("//"):
            said = line[2:].strip()
            if said.startswith("----"):
                divided = True
            elif divided and not comment and not said:
                divided = None  # a paragraph about the section follows, and not about the next function
            elif divided is not None:
                comment.append(said)
            i += 1
            continue
        if found := re.match(rf"(?:GRADUS_RARE )?(?:constexpr|inline) {results} (\w+)\(", line):
            whole, start = line, i
            while not re.search(r"\)\s*(\{|requires|;)", whole):
                i += 1
                depth += lines[i].count("{") - lines[i].count("}")
                whole += " " + lines[i].strip()
            arguments = re.search(rf"{found[1]}\((.*?)\)\s*(?:\{{|requires|;)", whole)[1]
            inside = [name for name, _ in spaces]
            if not {"detail", "cards"} & set(inside):
                taken = re.match(r"template <(.*)>$", lines[start - 1])
                names = [name + more for more, name in re.findall(r"\w+(\.\.\.)? (\w+)", taken[1])] if taken else []
                yield inside[1:], found[1] + (f"<{', '.join(names)}>" if names else ""), arguments, " ".join(comment)
        if not line.startswith("template"):
            comment, divided = [], False
        i += 1


def settings(name, header):
    """The fields of an options struct of ops/, as `.name = default`; of `options`, of the one in this header."""
    for path in sorted(room.glob("*.hpp")) if name != "options" else [room / f"{header}.hpp"]:
        if body := re.search(rf"^struct {name} \{{\n(.*?)^\}};", path.read_text(), re.S | re.M):
            fields = []
            for several in re.findall(r"^  [\w:<>]+(?:<[^;=]*>)? (\w+ =\s[^;]*);", body[1], re.M):
                several = re.sub(r"\s+", " ", several)  # a default may stand on the next line
                fields += [tuple(one.split(" = ", 1)) for one in re.split(r", (?=\w+ = )", several)]
            return ", ".join(f"`.{field} = {value}`" if value != "{}" else f"`.{field}`" for field, value in fields)
    return ""


kernels = (root / "include/gradus/cpu/elementwise.hpp").read_text()
formulas = {name: value.strip() for name, value in
            re.findall(r"^GRADUS_FORMULA\((\w+), \([^)]*\), (.*)\)(?:\s*//.*)?$", kernels, re.M)}
out = ""
for title, headers in sections:
    rows = {}
    for header in headers:
        for spaces, name, arguments, comment in functions((room / f"{header}.hpp").read_text()):
            if name.startswith("operator") or (header == "broadcast" and (name in sums) != title.startswith("Sums")):
                continue
            full = "::".join([*spaces, name])
            call = re.sub(r"std::initializer_list<([\w ]+)>", r"{\1, ...}", arguments)
            call = re.sub(r"const ((?:\w*_)?options)& (\w+)(?: = \{\})?", r"\1 \2", call)
            said = comment.replace("|", "\\|").strip()
            if not said and header == "elementwise" and (formula := formulas.get(card_of.get(name, name))):
                formula = re.sub(r"N\((-?[\d.]+)\)", r"\1", formula)
                said = "`" + re.sub(r"(\w)\* ", r"\1 * ", re.sub(r"detail::truth<N>\((.*)\)", r"\1", formula)) + "`"
            if name.startswith("logical_"):
                said += ", of bools"
            row = rows.setdefault(full, [[], "", ""])
            row[0].append(f"`{full}({call})`")
            row[1] = row[1] or said
            for options in re.findall(r"\b(\w+_options|options)& o\b", arguments):
                row[2] = row[2] or settings(options, header)
    out += f"\n## {title}\n\n"
    out += f"Header{'s' if len(headers) > 1 else ''}: {', '.join(f'`ops/{h}.hpp`' for h in headers)}.\n\n| call | what it gives | settings |\n|---|---|---|\n"
    for calls, said, options in rows.values():
        out += f"| {'<br>'.join(calls)} | {said} | {options} |\n"

written = page.read_text()
text = written[:written.index(marker)] + marker + out
if "--check" not in sys.argv:
    page.write_text(text)
elif text != written:
    sys.exit("docs/ops.md is not what the headers say; run tools/op_table.py")
