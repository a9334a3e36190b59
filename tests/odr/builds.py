#!/usr/bin/env python3
"""builds.py COMPILER INCLUDE: files of one program that were compiled with different answers (base/build.hpp).

They stand in one program and each does what its own flags say; where one hands an object to the other, the program does
not link, and the missing symbol names the caller's build. With and without xsimd the registers are the same, and so are
the bits of a training.
"""
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

compiler, include = sys.argv[1], os.path.abspath(sys.argv[2])
HEADER = """#include <gradus/update/rules/adam.hpp>
#include <gradus/cpu/simd.hpp>
int width_here();
int width_there();
double beta_there(const gradus::adam& rule);
"""
HERE = HEADER + """
int width_here() { return GRADUS_SIMD; }
int main() {
#if defined(HANDS_OVER)
  return beta_there(gradus::adam{.beta1 = 0.5}) == 0.5 ? 0 : 1;
#else
  return width_here() != width_there() ? 0 : 1;
#endif
}
"""
THERE = HEADER + """
int width_there() { return GRADUS_SIMD; }
double beta_there(const gradus::adam& rule) { return rule.beta1; }
"""

# Two rules' updates with a norm over all, by one file with xsimd and by another without; main() compares.
TRAINS = """#include <gradus/cpu/device.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/rules/adam.hpp>
#include <cstring>
#include <vector>
bool built_with_xsimd_WHERE() {
#if defined(GRADUS_XSIMD)
  return true;
#else
  return false;
#endif
}
std::size_t bytes_WHERE() { return sizeof(gradus::simd::register_of<float>) + sizeof(gradus::simd::register_of<double>); }
std::vector<float> trains_WHERE() {
  std::vector<float> w(1037), dw(1037);
  gradus::updater u{gradus::adam{.rate = 0.01}, gradus::clip_by_global_norm{0.5}};
  u.track("w", w);
  for (int step = 0; step < 5; ++step) {
    for (std::size_t i = 0; i < w.size(); ++i) dw[i] = 0.1f * static_cast<float>(i % 17) - w[i] * w[i] - 0.7f;
    u.apply({{"w", dw}});
  }
  return w;
}
"""
TRAINS_HERE = TRAINS.replace("WHERE", "here") + """
bool built_with_xsimd_there();
std::size_t bytes_there();
std::vector<float> trains_there();
int main() {
  if (built_with_xsimd_here() || !built_with_xsimd_there()) return 2;
  if (bytes_here() != bytes_there()) return 3;
  const auto a = trains_here(), b = trains_there();
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0 && a[0] != 0 ? 0 : 4;
}
"""
TRAINS_THERE = TRAINS.replace("WHERE", "there")
WIDTHS = {"x86_64": [["-msse2"], ["-mavx"], ["-mavx2", "-mfma"], ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512cd"]]}


def links(scratch, here, there, source_here=HERE, source_there=THERE, include_there=include):
    with open(os.path.join(scratch, "here.cpp"), "w", encoding="utf-8") as file:
        file.write(source_here)
    with open(os.path.join(scratch, "there.cpp"), "w", encoding="utf-8") as file:
        file.write(source_there)
    for name, flags, headers in (("here", here, include), ("there", there, include_there)):
        subprocess.run([compiler, "-std=c++20", "-I", headers, *flags, "-c",
                        name + ".cpp", "-o", name + ".o"], cwd=scratch, check=True)
    linked = subprocess.run([compiler, "here.o", "there.o", "-o", "program"], cwd=scratch, stderr=subprocess.PIPE, text=True)
    return linked.returncode == 0, linked.stderr


with tempfile.TemporaryDirectory() as scratch:
    none, wide = ["-DGRADUS_SIMD=0"], ["-DGRADUS_SIMD=1", "-DGRADUS_ZLIB"]
    linked, said = links(scratch, none, wide)
    if not linked:
        sys.exit(f"two builds do not stand in one program:\n{said}")
    if subprocess.run([os.path.join(scratch, "program")]).returncode != 0:
        sys.exit("the linker took one build's functions for the other's")
    linked, said = links(scratch, [*none, "-DHANDS_OVER"], none)
    if not linked or subprocess.run([os.path.join(scratch, "program")]).returncode != 0:
        sys.exit(f"one build does not link with itself:\n{said}")
    linked, said = links(scratch, [*none, "-DHANDS_OVER"], wide)
    if linked or "gradus::scalar_v" not in said:
        sys.exit(f"an object was handed from one build to another, and the linker said: {said or 'nothing'}")
    xsimd, small = ["-DGRADUS_XSIMD"], ["-O1", "-march=native"]
    linked, said = links(scratch, ["-DHANDS_OVER"], xsimd)
    if linked or "::adam" not in said:
        sys.exit(f"an object was handed from a build without xsimd to one with it, and the linker said: {said or 'nothing'}")
    linked, said = links(scratch, small, [*small, *xsimd], TRAINS_HERE, TRAINS_THERE)
    if not linked:
        sys.exit(f"a build with xsimd and one without do not stand in one program:\n{said}")
    if code := subprocess.run([os.path.join(scratch, "program")]).returncode:
        sys.exit("with and without xsimd: " + {2: "the macro does not decide", 3: "registers of different widths",
                                               4: "other numbers"}.get(code, f"exit code {code}"))
    # A file that leaves the bodies to gradus::compiled, and one that stands for it: of the same build, or the linker says so.
    leaves = ["-DGRADUS_COMPILED"]
    needs = "this_file_needs_gradus_compiled_with_the_same_flags_and_macros"
    file = "#include <gradus/base/build.hpp>\nint main() {}\n"
    library = f"#include <gradus/base/build.hpp>\nconst char gradus::detail::{needs} = 0;\n"
    linked, said = links(scratch, leaves, leaves, file, library)
    if not linked:
        sys.exit(f"a file does not link with gradus::compiled of the same build:\n{said}")
    linked, said = links(scratch, [*leaves, "-DGRADUS_ZLIB"], leaves, file, library)
    if linked or needs not in said:
        sys.exit(f"a file was linked with gradus::compiled of another build, and the linker said: {said or 'nothing'}")
    # Flags that change bits change the name: square roots from estimates, and fused products on a machine that is not x86.
    name = "#include <gradus/cpu/simd.hpp>\n#define TEXT_OF(x) #x\n#define TEXT(x) TEXT_OF(x)\n"
    same_bits = "GRADUS_SIMD, GRADUS_ESTIMATES, gradus::simd::has_fma<float>, gradus::simd::has_fma<double>"
    x86, arm = "x86_64-linux-gnu-g++", "arm-linux-gnueabihf-g++"
    for named, pair in ((x86, (["-mavx512f", "-mfma"], ["-mavx512f", "-mfma", "-mavx512dq"])),
                        (x86, (["-mavx2"], ["-mavx2", "-mfma"])),
                        (arm, (["-mfpu=vfpv3"], ["-mfpu=vfpv4"]))):
        compiler_of = compiler if named.startswith(platform.machine()) else shutil.which(named)
        if not compiler_of:
            continue
        builds, bits = [], []
        for flags in pair:
            with open(os.path.join(scratch, "name.cpp"), "w", encoding="utf-8") as file:
                file.write(name + f"build_is TEXT(GRADUS_BUILD);\nbits_are {same_bits};\n")
            text = subprocess.run([compiler_of, "-std=c++20", "-I", include, *flags, "-E", "-P", "name.cpp"], cwd=scratch, check=True,
                                  stdout=subprocess.PIPE, text=True).stdout
            builds.append(re.search(r'build_is "(.*)"', text).group(1))
            fma = re.search(r"bool has_fma =\s*(.*?);", text, re.S).group(1)
            bits.append((re.search(r"bits_are (.*);", text).group(1), fma))
        if bits[0] == bits[1] or builds[0] == builds[1]:
            sys.exit(f"{compiler_of} with {pair[0]} and with {pair[1]}: the bits' flags are {bits}, the builds' names {builds}")
    # Two versions: the same flags, headers of another version.
    other = os.path.join(scratch, "other")
    shutil.copytree(include, other)
    version = os.path.join(other, "gradus", "base", "version.hpp")
    with open(version, encoding="utf-8") as file:
        text = file.read()
    with open(version, "w", encoding="utf-8") as file:
        file.write(text.replace("#define GRADUS_VERSION_PATCH ", "#define GRADUS_VERSION_PATCH 9"))
    linked, said = links(scratch, ["-DHANDS_OVER"], [], include_there=other)
    if linked or "::adam" not in said:
        sys.exit(f"an object was handed from one version to another, and the linker said: {said or 'nothing'}")
    linked, said = links(scratch, [], none, include_there=other)
    if not linked or subprocess.run([os.path.join(scratch, "program")]).returncode != 0:
        sys.exit(f"two versions do not stand in one program:\n{said}")
    # The registers of other machines, which this one need not be.
    same = """#include <gradus/cpu/simd.hpp>
#include <xsimd/xsimd.hpp>
template <class T>
constexpr bool same = std::is_same_v<gradus::simd::register_of<T>,
                                     typename xsimd::types::simd_register<T, xsimd::default_arch>::register_type>;
static_assert(same<float> && same<double>);
"""
    with open(os.path.join(scratch, "same.cpp"), "w", encoding="utf-8") as file:
        file.write(same)
    for flags in WIDTHS.get(platform.machine(), []):
        if subprocess.run([compiler, "-std=c++20", "-w", "-I", include, *flags, "-fsyntax-only", "same.cpp"], cwd=scratch).returncode:
            sys.exit(f"with {' '.join(flags)} the registers are not xsimd's")
