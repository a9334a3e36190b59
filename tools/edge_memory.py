#!/usr/bin/env python3
"""Writes the table of docs/edge.md that says what memory policies give: the bytes of a trainer on a Cortex-M4F for tests/edge/cnn.hpp, as
arm-none-eabi-g++ lays it out. With --check, only tells whether the page is current."""
import pathlib
import re
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parent.parent
page = root / "docs/edge.md"
begin, end = "<!-- made by tools/edge_memory.py -->\n", "<!-- end -->\n"
batches = [1, 4, 16, 64]
policies = [("none", ""), ("`one_by_one`", ", gradus::one_by_one"), ("`release_gradients`", ", gradus::release_gradients"),
            ("`slots<bfloat16>`", ", gradus::slots<gradus::bfloat16>"), ("`slots<int8>`", ", gradus::slots<gradus::int8>"), ("`one_by_one`, `slots<bfloat16>`", ", gradus::one_by_one, gradus::slots<gradus::bfloat16>"),
            ("`release_gradients`, `slots<bfloat16>`", ", gradus::release_gradients, gradus::slots<gradus::bfloat16>"),
            ("`fused_pooling`", ", gradus::fused_pooling"), ("`one_by_one`, `fused_pooling`", ", gradus::one_by_one, gradus::fused_pooling"),
            ("`release_gradients`, `fused_pooling`", ", gradus::release_gradients, gradus::fused_pooling"),
            ("`one_by_one`, `slots<bfloat16>`, `fused_pooling`", ", gradus::one_by_one, gradus::slots<gradus::bfloat16>, gradus::fused_pooling"),
            ("`release_gradients`, `slots<bfloat16>`, `fused_pooling`", ", gradus::release_gradients, gradus::slots<gradus::bfloat16>, gradus::fused_pooling"),
            ("`one_by_one`, `slots<int8>`, `fused_pooling`", ", gradus::one_by_one, gradus::slots<gradus::int8>, gradus::fused_pooling"),
            ("`release_gradients`, `slots<int8>`, `fused_pooling`", ", gradus::release_gradients, gradus::slots<gradus::int8>, gradus::fused_pooling")]
image = 256 * 4 + 4  # of an input: pixels, label

source = '#include <gradus/train/fused_pooling.hpp>\n#include "cnn.hpp"\n'
source += """template <class... Policies>
using trainer = decltype(gradus::make_static_stepper<cnn>(std::declval<Policies>()..., gradus::adam{.rate = 0.01}, gradus::portable{}));
extern "C" {
"""
for i, (_, given) in enumerate(policies):
    for n in batches:
        source += f"char trainer_{i}_{n}[sizeof(trainer<gradus::static_batch<{n}>{given}>)];\n"
source += "}\n"
with tempfile.TemporaryDirectory() as folder:
    file, out = pathlib.Path(folder) / "sizes.cpp", pathlib.Path(folder) / "sizes.o"
    file.write_text(source)
    subprocess.run(["arm-none-eabi-g++", "-std=gnu++20", "-O0", "-fno-exceptions", "-fno-rtti", "-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16",
                    "-mfloat-abi=hard", f"-I{root}/include", f"-I{root}/tests/edge", "-c", str(file), "-o", str(out)], check=True)
    names = subprocess.run(["arm-none-eabi-nm", "-S", str(out)], capture_output=True, text=True, check=True).stdout
sizes = {(int(i), int(n)): int(size, 16) for size, i, n in re.findall(r"^\w+ (\w+) \w trainer_(\d+)_(\d+)$", names, re.M)}

table = "| policies | " + " | ".join(f"batch {n}" for n in batches) + " |\n|---|" + "--:|" * len(batches) + "\n"
for i, (said, _) in enumerate(policies):
    table += f"| {said} | " + " | ".join(f"{sizes[i, n] / 1000:.1f}" for n in batches) + " |\n"
table += "| of these the inputs | " + " | ".join(f"{n * image / 1000:.1f}" for n in batches) + " |\n"

text = page.read_text()
a, b = text.index(begin) + len(begin), text.index(end)
new = text[:a] + table + text[b:]
if "--check" in sys.argv:
    sys.exit(0 if new == text else "docs/edge.md: the table of memory policies is not current; run tools/edge_memory.py")
page.write_text(new)
print(table, end="")
