#!/usr/bin/env python3
"""Checks that README.md shows programs as they are: the block after <!-- FILE --> equals FILE. Without --check, mends it.

Also that the pages beside it link to what exists, and that CITATION.cff has the version."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
readme = root / "README.md"
text = readme.read_text()


def current(match):
    return f"<!-- {match[1]} -->\n```cpp\n{(root / match[1]).read_text().rstrip()}\n```"


mended = re.sub(r"<!-- (examples\/\S+) -->\n```cpp\n.*?\n```", current, text, flags=re.S)
if "--check" not in sys.argv:
    readme.write_text(mended)
elif mended != text:
    sys.exit("README.md shows a program that has changed since; run tools/readme.py")
for page in ("README.md", "SECURITY.md", "SUPPORT.md", "CONTRIBUTING.md"):
    missing = [p for p in re.findall(r"\]\(([^):#]+)[^):]*\)", (root / page).read_text()) if not (root / p).exists()]
    if missing:
        sys.exit(f"{page} links to what does not exist: {', '.join(missing)}")
# What says the version beside the header that holds it.
version = ".".join(re.findall(r"^#define GRADUS_VERSION_(?:MAJOR|MINOR|PATCH) +(\d+)",
                              (root / "include/gradus/base/version.hpp").read_text(), re.M))
released = re.search(r"^## (\S+) - (\S+)", (root / "CHANGELOG.md").read_text(), re.M)
for line in (f"version: {version}", f"date-released: {released[2]}"):
    if line not in (root / "CITATION.cff").read_text().split("\n"):
        sys.exit(f'CITATION.cff: expected the line "{line}", as include/gradus/base/version.hpp and CHANGELOG.md have it')
