#!/usr/bin/env python3
"""Writes docs/policies.md: every kind of policy, the doors that take it, and the policies of the kind with the first sentence above each,
read from the headers. With --check, only tells whether the page is current."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
base = root / "include/gradus"
page = root / "docs/policies.md"
marker = "<!-- made by tools/policy_table.py from the headers -->\n"
# Kinds whose policies have tables of their own.
tables = {"rule": "[the table of optimizers](optimizers.md); parts and groups of rules are in [composition](composition.md)",
          "schedule": "[the table of schedules](schedules.md)", "hook": "your program ([hooks](hooks.md))",
          "saving_listener": "your program ([hooks](hooks.md))", "codec": "[the pages of formats](formats)"}
# Kinds that a program does not write as a policy: refused stands for a mistake, transform and follower are parts of a chain.
left_out = {"refused"}
stands = {"follower": "It stands in a chain, after the rule: `chain{adam{}, lookahead{}}`.",
          "transform": "It stands in a chain, before the rule: `chain{weight_decay{0.01}, adam{}}`.",
          "tasks": "Calls that wait take it as a last argument or an option: queues, coordinators, `prefetch`, background savers."}
# What the doors' lists do not say of a kind.
notes = {"connection": "`make_trainer` takes `connected` alone, `make_supervisor<model>` takes `connected` and `in_process`; `remote_sessions` is for sessions of a graph: "
                       "`make_supervisor(g, ...)`, session managers and monitored sessions."}
written_as = {"varied": "vary<&rule::setting>(schedule)"}
# What a program includes, where the policy's own header declares only the value.
included_by = {"copy_snapshot": "checkpoint/background.hpp", "rolling_snapshot": "checkpoint/background.hpp", "fork_snapshot": "checkpoint/background.hpp",
               "all_reduce": "cluster/all_reduce.hpp"}
erased = {"any_file_system", "any_clock"}  # what a policy of the kind becomes, whatever its type
# The doors, and where each names the kinds that it takes.
doors = [("`make_trainer`", "train/door.hpp", "trainer_kinds"), ("`make_supervisor`", "train/supervisor.hpp", "supervisor_kinds"),
         ("`make_static_stepper`", "run/static_door.hpp", "policies_fit"), ("`stepper`", "run/stepper.hpp", "policies_fit"),
         ("`updater`", "run/updater_door.hpp", "updater_kinds"),
         ("`session`", "run/session.hpp", "session_kinds")]
texts = {path.relative_to(base).as_posix(): path.read_text() for path in sorted(base.rglob("*.hpp")) if "testing" not in path.parts}


def kinds_of(header, name, seen=()):
    """The kinds of `name = kinds<...>` or of the first `name<kinds<...>` in a header, the lists that it adds to included."""
    found = re.search(rf"\b{name}(?: =)?\s*<?\s*(kinds(?:_and)?<[^;]*)", texts[header])
    words = found[1].split(", Policies")[0].split(", Settings")[0]
    out = re.findall(r"kind::(\w+)", words)
    for other in re.findall(r"\b(\w+_kinds)\b", words):
        if other not in seen:
            home = next(h for h, text in texts.items() if re.search(rf"using {other} =", text))
            out += kinds_of(home, other, (*seen, name))
    return out


def first_sentence(comment):
    lines = []
    for line in comment.splitlines():
        if line.startswith("//   "):  # code: what was said before it is the sentence
            if lines:
                break
            continue
        lines.append(line[2:].strip())
    words = " ".join(lines).strip()
    words = re.sub(r"^-+ [^.]*?(?=[A-Z])", "", words)
    return re.split(r"(?<=\.)(?<!et al\.)\s", words, maxsplit=1)[0].rstrip(":;").replace("|", "\\|") if words else ""


kinds, many = {}, {"optimizer"}  # a session counts its optimizers by itself
for text in texts.values():
    for block in re.findall(r"^namespace kind \{\n(.*?)^\}  // namespace kind", text, re.S | re.M):
        for name, said in re.findall(r"^struct (\w+) \{(?:\};)?\s*// (.*)$", block, re.M):
            kinds[name] = said.split(": ")[0]  # the names behind it are those of the table
        many.update(re.findall(r"^struct (\w+) \{\s*//[^\n]*\n  static constexpr bool many = true;", block, re.M))
policies = {name: [] for name in kinds}
for header, text in texts.items():
    for match in re.finditer(r"((?:^//[^\n]*\n)*)(?:^template <[^\n]*>\n(?:^  requires[^\n]*\n)?)?^(?:struct|class) (\w+)(?: final)?(?: :[^{;]*)? \{(?: *//[^\n]*)?\n(.*?)^\};", text, re.S | re.M):
        comment, name, body = match.groups()
        own = re.search(r"^  using policy_for = (?:gradus::)?kind::(\w+);", body, re.M)
        hidden = text.rfind("\nnamespace detail {", 0, match.start()) > text.rfind("}  // namespace detail", 0, match.start())
        if hidden:
            continue
        said = first_sentence(comment)
        if not said or said.startswith(f"{name}{{"):  # one struct in its file: what the file says
            said = first_sentence("".join(re.match(r"(?:^//[^\n]*\n)*", text, re.M)[0]))
        space = re.findall(r"^(?:inline )?namespace (\w+) \{|^(\}  // namespace \w+)", text[:match.start()], re.M)
        open_spaces = []
        for opened, closed in space:
            open_spaces.append(opened) if opened else open_spaces and open_spaces.pop()
        full = "::".join([*open_spaces, name])
        if own and name not in erased:
            policies[own[1]].append((written_as.get(full, full), said, header))
    # A policy that is another one and more: template <class Library, arithmetic A> struct products : A.
    for comment, kind, name in re.findall(r"((?:^//[^\n]*\n)*)^template <[^\n]*\b(\w+) (?:A|Base)\b[^\n]*>\nstruct (\w+) : (?:A|Base) \{", text, re.M):
        if kind in policies:
            said = first_sentence(comment) or first_sentence(re.match(r"(?:^//[^\n]*\n)*", text, re.M)[0])
            policies[kind].append((name, said, header))

taken = {kind: [door for door, header, name in doors if kind in kinds_of(header, name)] for kind in kinds}
out = ""
for kind in sorted(kinds, key=lambda k: (not taken[k], k)):
    if kind in left_out:
        continue
    out += f"\n## {kind.replace('_', ' ')}\n\nKind `kind::{kind}`: {kinds[kind]}.{' Any number may be given.' if kind in many else ''}\n\n"
    out += f"Taken by {', '.join(taken[kind])}.{' ' + notes[kind] if kind in notes else ''}\n" if taken[kind] else stands[kind] + "\n"
    if kind in tables:
        out += f"\nThe policies of this kind are in {tables[kind]}.\n"
    elif policies[kind]:
        out += "\n| policy | what it does | header |\n|---|---|---|\n"
        out += "".join(f"| `{name}` | {said} | `{included_by.get(name, header)}` |\n" for name, said, header in policies[kind])

written = page.read_text()
text = written[:written.index(marker)] + marker + out
if "--check" not in sys.argv:
    page.write_text(text)
elif text != written:
    sys.exit("docs/policies.md is not what the headers say; run tools/policy_table.py")
