#!/usr/bin/env python3
"""Writes the two tables of docs/schedules.md: value, settings and what others call it, of each schedule that
update/schedules.hpp lists, from the lines "// Value: ...", "// Settings: ...", "// Elsewhere: ..." above its struct. With
--check, only tells whether the page is current."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
room = root / "include/gradus/update"
page = root / "docs/schedules.md"
head = "| schedule | value | settings | elsewhere |\n|---|---|---|---|\n"
keys = ("Value", "Settings", "Elsewhere")
of_tensorflow = ("schedule.hpp", "decay.hpp", "cosine.hpp")  # the first table; the second one has the rest

headers = {path.name: path.read_text() for path in [room / "schedule.hpp", *sorted((room / "schedules").glob("*.hpp"))]}
listed = re.search(r"schedule_list<(\w.*?)>;", (room / "schedules.hpp").read_text(), re.S)[1]
tables = ["", ""]
for name in (n.strip() for n in listed.split(",")):
    found = [(file, match[1]) for file, text in headers.items()
             for match in [re.search(rf"((?:^//[^\n]*\n)+)struct {name} \{{", text, re.M)] if match]
    if len(found) != 1:
        sys.exit(f"update/schedules.hpp lists {name}: expected its struct in one header of update/schedules/, found {found}")
    file, comment = found[0]
    words = " " + " ".join(line[2:].strip() for line in comment.splitlines())
    parts = re.split(r" (%s): " % "|".join(keys), words[words.find(" Value: "):])
    said = dict(zip(parts[1::2], (w.strip() for w in parts[2::2])))
    for key in keys[:2]:
        if key not in said:
            sys.exit(f"the comment above {name} in {file} has no line \"// {key}: ...\"")
    tables[file not in of_tensorflow] += f"| `{name}` | {said['Value']} | {said['Settings']} | " + (
        said["Elsewhere"] + " |\n" if "Elsewhere" in said else "|\n")

written = page.read_text()
text = re.sub(re.escape(head) + r"(?:\|[^\n]*\n)*", lambda _: head + tables.pop(0), written)
if "--check" not in sys.argv:
    page.write_text(text)
elif text != written:
    sys.exit("docs/schedules.md is not what the headers say; run tools/schedule_table.py")
