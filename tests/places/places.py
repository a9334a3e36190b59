#!/usr/bin/env python3
"""places.py COMPILER ROOT: adds an optimizer, a schedule, a feature column, a codec and a hook, from the templates
beside this file, and in long runs an elementwise op, to a copy of the tree: in exactly the places that the table of
CONTRIBUTING.md names, and wants everything that should follow to follow:

    the laws of tools/rooms.py hold, the page written by the tool has the new row,
    the suites that run over the lists take it up without a word of its own (conformance, convergence; a schedule's
    numbers spoiled one by one; an op's gradient by finite differences; a codec's files recognized by their name and by
    their first bytes), rows of numbers, layouts of graphs and what to parse take a column, a trainer and a supervisor
    call a hook, and all of these, with its own test, pass.

Adding is all that is done by hand. A tree in which something has to be added elsewhere fails here."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

compiler, root = sys.argv[1:3]
here = os.path.dirname(os.path.abspath(__file__))
failures = []


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def said_places(tree, what, name):
    """The files of the row "| an optimizer | 3 | `...`, ... |", and what it counts."""
    row = re.search(rf"^\| {what} \| (\d+) \| (.*) \|$", read(os.path.join(tree, "CONTRIBUTING.md")), re.M)
    if not row:
        sys.exit(f"CONTRIBUTING.md has no row for {what}")
    files = [f.replace("<it>", name) for f in re.findall(r"`([\w/<>]+\.(?:[hc]pp|md))`", row[2].split("; ")[0])]
    if len(files) != int(row[1]):
        failures.append(f"CONTRIBUTING.md counts {row[1]} places for {what} and names {len(files)}")
    return files


def run(what, words, **more):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode != 0:
        failures.append(f"{what}:\n" + done.stdout[:4000])
    return done.returncode == 0


def insert_name(text, family, include, name):
    """One include more in its place, and the name at the end of the list."""
    lines = text.split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith('#include "' + os.path.dirname(include)))
    while lines[at].startswith('#include "') and lines[at] < f'#include "{include}"':
        at += 1
    lines.insert(at, f'#include "{include}"')
    return re.sub(rf"({family}<\w[^>]*)>;", rf"\1, {name}>;", "\n".join(lines))


def compile_and_run(tree, name, unit):
    source, program = os.path.join(tree, name + ".cpp"), os.path.join(tree, name)
    with open(source, "w", encoding="utf-8") as file:
        file.write("#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN\n#include <doctest/doctest.h>\n" + unit)
    words = [compiler, "-std=c++20", "-O0", "-DGRADUS_INLINE=inline", f'-DGRADUS_SOURCE_DIR="{tree}"', "-I",
             os.path.join(tree, "include"), "-I", os.path.join(tree, "tests"), source, "-o", program, "-pthread"]
    if run(f"what follows for {name} does not compile", words):
        run(f"what follows for {name} does not pass", [program])


def change(tree, file, after, more):
    """Text more in its place: behind a text that stands in the file once."""
    path = os.path.join(tree, file)
    text = read(path)
    if text.count(after) != 1:
        sys.exit(f"{file} has no single {after}")
    with open(path, "w", encoding="utf-8") as out:
        out.write(text.replace(after, after + more))


def add_files(tree, what, name, templates, changes):
    """A header, a test and what else is new, from templates, and lines of files that are there."""
    wanted = {*templates, *(file for file, _, _ in changes)}
    if set(said_places(tree, what, name)) != wanted:
        failures.append(f"CONTRIBUTING.md names other places for {what} than these: {', '.join(sorted(wanted))}")
    for file, template in templates.items():
        shutil.copy(os.path.join(here, template), os.path.join(tree, file))
    for one in changes:
        change(tree, *one)


def add(tree, what, name, template, places, family, page, tool):
    files = said_places(tree, what, name)
    header, test, listed = (next((f for f in files if f.startswith(start)), None) for start in places)
    if None in (header, test, listed) or len(files) != 3:
        sys.exit(f"CONTRIBUTING.md names {files} for {what}; this test knows how to add a header, a test and a line")
    shutil.copy(os.path.join(here, template + ".hpp"), os.path.join(tree, header))
    shutil.copy(os.path.join(here, template + ".cpp"), os.path.join(tree, test))
    path = os.path.join(tree, listed)
    text = insert_name(read(path), family, os.path.relpath(header, os.path.dirname(listed)).replace(os.sep, "/"), name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    run(f"{tool} does not know {name}", [sys.executable, os.path.join(tree, "tools", tool)])
    if f"| `{name}` |" not in read(os.path.join(tree, "docs", page)):
        failures.append(f"docs/{page} has no row for {name}")


# Of an op: in which file, after which line or words, what.
CARDS, KERNELS = "include/gradus/ops/elementwise.hpp", "include/gradus/cpu/elementwise.hpp"
VALUES = "tests/ops/elementwise.cpp"
OP = [
    (CARDS, "GRADUS_CARD_FUNCTION void grad_softplus(backward&);\n", "GRADUS_CARD_FUNCTION void grad_cubed(backward&);\n"),
    (CARDS, "inline constexpr card neg{", 'cubed{"Cubed", 1, e, infer_floats, grad_cubed}, neg{'),
    (CARDS, "constexpr value softplus(value x) { return x.g->add(cards::softplus, {x}); }\n",
     "constexpr value cubed(value x) { return x.g->add(cards::cubed, {x}); }\n"),
    (CARDS, "GRADUS_CARD_FUNCTION void grad_softplus(backward& b) { b.to(0, b.dy * sigmoid(b.in(0))); }\n",
     "GRADUS_CARD_FUNCTION void grad_cubed(backward& b) { b.to(0, b.dy * 3.0 * square(b.in(0))); }\n"),
    (KERNELS, "GRADUS_FORMULA(square, (N a), a* a)\n", "GRADUS_FORMULA(cubed, (N a), a* a* a)\n"),
    (KERNELS, "&cards::softplus,", " &cards::cubed,"),
    (VALUES, "const unary unaries[] = {\n", '    {"cubed", cubed, [](double x) { return x * x * x; }, -3, 3},\n'),
]


def add_op(tree):
    if {f for f, _, _ in OP} != set(said_places(tree, "an elementwise op", "cubed")):
        failures.append("CONTRIBUTING.md names other places for an elementwise op than this test has")
    for file, after, more in OP:
        text = read(os.path.join(tree, file))
        if text.count(after) != 1:
            sys.exit(f"{file} has no single {after}")
        new = after.replace("neg{", more) if "neg{" in after else after + more
        with open(os.path.join(tree, file), "w", encoding="utf-8") as out:
            out.write(text.replace(after, new))
    compile_and_run(tree, "op", '#include "ops/elementwise.cpp"\n')
    compile_and_run(tree, "op_gradients", '#include "whole/gradients.cpp"\nTEST_CASE("it is in the list") {\n'
                    "  std::map<std::string, const card*> ops;\n  note(elementwise_ops{}, ops);\n"
                    '  CHECK(ops.count("Cubed") == 1);\n}\n')


with tempfile.TemporaryDirectory() as scratch:
    tree = os.path.join(scratch, "tree")
    for folder in ("include", "docs", "tools",
                   *(f"tests/{f}" for f in ("update", "whole", "golden", "ops", "places", "columns", "codec"))):
        shutil.copytree(os.path.join(root, folder), os.path.join(tree, folder))
    for file in ("CONTRIBUTING.md", "rooms.txt"):
        shutil.copy(os.path.join(root, file), tree)
    add(tree, "an optimizer", "sliding_mean", "optimizer",
        ("include/gradus/update/rules/", "tests/", "include/gradus/update/rules.hpp"), "rule_list", "optimizers.md",
        "optimizer_table.py")
    add(tree, "a schedule", "halved_rate", "schedule",
        ("include/gradus/update/schedules/", "tests/", "include/gradus/update/schedules.hpp"), "schedule_list",
        "schedules.md", "schedule_table.py")
    add_files(tree, "a feature column", "parity_column",
              {"include/gradus/columns/parity_column.hpp": "column.hpp", "tests/columns/parity_column.cpp": "column.cpp"},
              [("include/gradus/columns/feature_column.hpp", '#include "numeric_column.hpp"\n', '#include "parity_column.hpp"\n')])
    add_files(tree, "a codec", "brief_binary",
              {"include/gradus/codec/brief_binary.hpp": "codec.hpp", "tests/codec/brief_binary.cpp": "codec.cpp",
               "docs/formats/brief_binary.md": "codec.md"},
              [("include/gradus/codec/detect.hpp", '    {"cereal_json", ".ckpt", ".ckpt"},\n',
                '    {"brief_binary", ".ckpt", ".ckpt"},\n'),
               ("include/gradus/codec/all_codecs.hpp", "#include <type_traits>\n\n", '#include "brief_binary.hpp"\n'),
               ("include/gradus/codec/all_codecs.hpp", "codec_list<flat_binary", ", brief_binary"),
               ("include/gradus/codecs.hpp", '#include "checkpoint/warm_start.hpp"\n', '#include "codec/brief_binary.hpp"\n')])
    # The laws of the house, of the rooms that were copied with their tests.
    laws = subprocess.run([sys.executable, os.path.join(tree, "tools/rooms.py")], stdout=subprocess.PIPE, text=True)
    for line in laws.stdout.splitlines():
        if any(name in line for name in ("sliding_mean", "halved_rate", "parity_column", "brief_binary")):
            failures.append(line)
    compile_and_run(tree, "schedule", '#include "update/schedules.cpp"\n#include "update/schedules/halved_rate.cpp"\n')
    compile_and_run(tree, "optimizer", """#include "update/rules/sliding_mean.cpp"
#include "whole/conformance.hpp"
#include "whole/convergence.hpp"
template <class... Rules>
constexpr bool is_listed(gradus::rule_list<Rules...>) {
  return (std::is_same_v<Rules, gradus::sliding_mean> || ...);
}
static_assert(is_listed(gradus::all_rules{}));
using trials = rule_trials::of<gradus::sliding_mean>;  // what the suites do with each rule of the list
constexpr std::type_identity<gradus::sliding_mean> rule;
TEST_CASE("conforms") { trials::conformance(rule, must_conform{}); }
TEST_CASE("converges") { trials::convergence(rule, convergence::must_converge{}); }
""")

    compile_and_run(tree, "column", """#include "columns/parity_column.cpp"
#include <gradus/columns/feature_column.hpp>
#include <gradus/columns/feature_layout.hpp>
#include <gradus/columns/parse_example_spec.hpp>
TEST_CASE("rows of numbers, a graph's layout and what to parse take it") {
  const auto n = parity_column("n");
  const auto data = batch_of(2, {ragged_ints("n", {{4}, {-3, 2}})});
  const feature_columns columns{indicator_column(n)};
  CHECK(columns.dense(data) == std::vector<float>{1, 0, 1, 1});
  feature_layout layout({.linear_model = {n}, .ids_of = {{"n", 2}}});
  datum fed;
  layout.write(data, fed);
  CHECK(fed.size() == 1);
  CHECK(make_parse_example_spec(columns, {}).entries()[0].name == "n");
}
""")
    compile_and_run(tree, "codec", '#include "codec/brief_binary.cpp"\n#include "codec/all_codecs.cpp"\n#include <gradus/codecs.hpp>\n'
                    'TEST_CASE("the door has it") { CHECK(saver<brief_binary>{}.checkpoints().empty()); }\n')
    if "\n| a hook, a saving listener | 1 | a struct in the program" not in read(os.path.join(tree, "CONTRIBUTING.md")):
        failures.append("CONTRIBUTING.md has other places for a hook than a struct in the program")
    compile_and_run(tree, "hook", '#include "places/hook.cpp"\n')

    if "GRADUS_LONG" in os.environ:
        add_op(tree)

for f in failures:
    print(f)
print("everything followed" if not failures else f"{len(failures)} did not follow")
sys.exit(1 if failures else 0)
