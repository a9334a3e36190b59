#!/usr/bin/env python3
"""Checks that README.md shows programs as they are: the block after <!-- FILE --> equals FILE. Without --check, mends it."""
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
missing = [p for p in re.findall(r"\]\(([^):#]+)\)", mended) if not (root / p).exists()]
if missing:
    sys.exit(f"README.md links to what does not exist: {', '.join(missing)}")
