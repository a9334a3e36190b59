#!/usr/bin/env python3
"""Builds and runs tests/install/consumer in one WAY, in a scratch folder, and checks what reached it. The way `lintian`
only makes the Debian package and asks lintian about it."""
import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

parser = argparse.ArgumentParser()
for name in ("way", "cmake", "compiler", "source", "version"):
    parser.add_argument("--" + name, required=True)
a = parser.parse_args()
here = os.path.dirname(os.path.abspath(__file__))


def run(*command, expect_failure=False, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if (done.returncode != 0) != expect_failure:
        sys.exit(f"{shlex.join(command)} returned {done.returncode}:\n{done.stdout}")
    return done.stdout


def pkg_config(path, option, **more):
    return shlex.split(run("pkg-config", option, "gradus", env={**os.environ, "PKG_CONFIG_PATH": path}, **more))


def check_pkg_config(path, include):
    """gradus.pc in the folder `path` leads to the headers, and to threads in what is compiled and in what is linked."""
    said = {option: pkg_config(path, option) for option in ("--cflags", "--libs")}
    folders = [os.path.normpath(word[2:]) for word in said["--cflags"] if word.startswith("-I")]
    if folders != [include] or any("-pthread" not in words for words in said.values()):
        sys.exit(f"pkg-config: expected -I{include}, and -pthread in both lines, found {said}")


def files_under(folder):
    return sorted(os.path.relpath(os.path.join(d, n), folder) for d, _, names in os.walk(folder) for n in names)


with tempfile.TemporaryDirectory() as scratch:
    prefix, build, theirs = (os.path.join(scratch, n) for n in ("prefix", "build", "theirs"))
    # `CXXFLAGS` and the like are of whoever runs this test, not of the consumer.
    environment = {k: v for k, v in os.environ.items() if k not in ("CXXFLAGS", "CPPFLAGS", "LDFLAGS", "DESTDIR")}
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    common = [*generator, f"-DCMAKE_CXX_COMPILER={a.compiler}"]

    way = "find_package" if a.way == "deb" else a.way  # what the consumer does
    library_alone = ["-DGRADUS_BUILD_TESTS=OFF", "-DGRADUS_BUILD_EXAMPLES=OFF", "-DGRADUS_BUILD_BENCHMARKS=OFF"]
    if a.way in ("deb", "lintian"):
        for tool in ("dpkg", "cpack", *(["lintian"] if a.way == "lintian" else [])):
            if not shutil.which(tool):
                print(f"skipped: {tool} is not here" + " (scripts/deps.sh --all)" * (tool == "lintian"))
                sys.exit(77)
        run(a.cmake, "-S", a.source, "-B", f"{scratch}/ours", *common, *library_alone, env=environment)
        run(os.path.join(os.path.dirname(a.cmake), "cpack"), "-G", "DEB", cwd=f"{scratch}/ours", env=environment)
        package = os.path.join(scratch, "ours", f"libgradus-dev_{a.version}_all.deb")
        if a.way == "lintian":
            run("lintian", "--fail-on", "error", package, env=environment)
            print("lintian: no error")
            sys.exit(0)
        # What its gradus.pc turns on, it depends on.
        names = {"PROTOZERO": "libprotozero-dev", "STB": "libstb-dev", "XSIMD": "libxsimd-dev", "ZLIB": "zlib1g-dev"}
        depends = re.split(r"[,\s]+", run("dpkg-deb", "-f", package, "Depends", env=environment).strip())
        run("dpkg-deb", "-x", package, f"{scratch}/unpacked", env=environment)
        pc = open(f"{scratch}/unpacked/usr/share/pkgconfig/gradus.pc", encoding="utf-8").read()
        wanted = sorted(names[macro] for macro in re.findall(r"-DGRADUS_(\w+)", pc))
        if sorted(filter(None, depends)) != wanted:
            sys.exit(f"the package depends on {depends}, and its gradus.pc needs {wanted}")
        # Installed where no system is; without a superuser's rights, unpacked.
        superuser = os.geteuid() == 0
        root = os.path.join(scratch, "root")
        os.makedirs(os.path.join(root, "var", "lib", "dpkg", "updates"))
        os.makedirs(os.path.join(root, "var", "lib", "dpkg", "info"))
        open(os.path.join(root, "var", "lib", "dpkg", "status"), "w").close()
        dpkg = ["dpkg", f"--root={root}", f"--log={scratch}/log", "--force-depends"]  # the root has no other package
        run(*([*dpkg, "-i", package] if superuser else ["dpkg-deb", "-x", package, root]), env=environment)
        shutil.rmtree(f"{scratch}/ours")
        prefix = os.path.join(root, "usr")
    elif a.way in ("find_package", "compiled", "pch", "components", "pkg_config"):
        run(a.cmake, "-S", a.source, "-B", f"{scratch}/ours", *common, *library_alone,
            f"-DCMAKE_INSTALL_PREFIX={prefix}", env=environment)
        run(a.cmake, "--install", f"{scratch}/ours", env=environment)
        # Moved after installing: nothing in the package may know where it was put.
        moved = os.path.join(scratch, "moved")
        os.rename(prefix, moved)
        shutil.rmtree(f"{scratch}/ours")
        prefix = moved
        installed = files_under(prefix)
        wanted = sorted("include/" + f for f in files_under(os.path.join(a.source, "include")))
        got = [f for f in installed if f.startswith("include/")]
        if got != wanted:
            sys.exit(f"headers of the source and of the installation differ:\n{sorted(set(got) ^ set(wanted))}")
        for name in installed:
            if not name.startswith("include/"):
                text = open(os.path.join(prefix, name), encoding="utf-8").read()
                if a.source in text or scratch in text:
                    sys.exit(f"{name} knows a path of the machine that built it")
    if a.way == "pkg_config":
        environment["PKG_CONFIG_PATH"] = os.path.join(prefix, "share", "pkgconfig")
        if not shutil.which("pkg-config"):
            sys.exit("pkg-config is not here; install it (scripts/deps.sh)")
        check_pkg_config(environment["PKG_CONFIG_PATH"], os.path.join(prefix, "include"))
        # Folders of the user's own: deeper ones, moved after installing, and an absolute one, which is where it is.
        run(a.cmake, "-S", a.source, "-B", f"{scratch}/ours", *common, *library_alone,
            f"-DCMAKE_INSTALL_PREFIX={scratch}/deep", "-DCMAKE_INSTALL_INCLUDEDIR=include/vendor",
            "-DCMAKE_INSTALL_DATADIR=lib/data", env=environment)
        run(a.cmake, "--install", f"{scratch}/ours", env=environment)
        os.rename(f"{scratch}/deep", f"{scratch}/deep_moved")
        check_pkg_config(f"{scratch}/deep_moved/lib/data/pkgconfig", f"{scratch}/deep_moved/include/vendor")
        if not os.path.exists(f"{scratch}/deep_moved/include/vendor/gradus/gradus.hpp"):
            sys.exit("-DCMAKE_INSTALL_INCLUDEDIR=include/vendor has no header")
        run(a.cmake, "-S", a.source, "-B", f"{scratch}/ours", f"-DCMAKE_INSTALL_INCLUDEDIR={scratch}/absolute",
            env=environment)
        check_pkg_config(f"{scratch}/ours", f"{scratch}/absolute")
        shutil.rmtree(f"{scratch}/ours")

    # A program says which version it was written for: this one's first two numbers while the first is 0.
    wanted_version = ".".join(a.version.split(".")[:2])

    def configure(build, *more, **keywords):
        return run(a.cmake, "-S", f"{here}/consumer", "-B", build, *common, f"-DWAY={way}", f"-DVERSION={wanted_version}", f"-DGRADUS_SOURCE={a.source}",
                   f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_INSTALL_PREFIX={theirs}", *more, env=environment, **keywords)

    if a.way == "components":
        # What is not there is refused with its name; what is no component too.
        said = configure(build + "_none", "-DCOMPONENTS=telepathy", expect_failure=True)
        if "gradus has no component 'telepathy'" not in re.sub(r"\s+", " ", said):
            sys.exit(f"an unknown component was refused without its name:\n{said}")
        said = configure(build + "_away", "-DCOMPONENTS=xtensor", "-DCMAKE_DISABLE_FIND_PACKAGE_xtensor=ON",
                         expect_failure=True)
        if "gradus needs xtensor" not in re.sub(r"\s+", " ", said):
            sys.exit(f"an absent component was refused without its name:\n{said}")
        # A program for another interface is told so; one for a later patch of this one too.
        major, minor, patch = (int(n) for n in a.version.split("."))
        for other in (f"{major}.{minor - 1}", "0.1", f"{major}.{minor + 1}", f"{major}.{minor}.{patch + 1}", f"{major + 1}.0"):
            wanted_version = other
            said = configure(build + "_" + other, "-DCOMPONENTS=threads", expect_failure=True)
            if "gradus" not in said or other not in said:
                sys.exit(f"version {other} was refused without a word of it:\n{said}")
        wanted_version = ".".join(a.version.split(".")[:2])
        # No foreign library at all: the package is found and a header that needs none compiles.
        off = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{p}=ON" for p in ("xtensor", "cereal", "nlohmann_json")]
        configure(build + "_bare", *off)
    # Forced inlining without an optimizer makes kernels of megabytes, and this build has none.
    inlined = "-DGRADUS_INLINE=inline"
    # The library's files stand the user's strictest warnings and fast-math, which the kernels of `portable` refuse.
    flags = [inlined, "-ffast-math", "-Werror", "-Weffc++"]
    configure(build, "-DCOMPONENTS=threads", *(["-DCMAKE_CXX_FLAGS=" + " ".join(flags)] if a.way == "compiled" else []))
    run(a.cmake, "--build", build, env=environment)
    said = run(os.path.join(build, "program", "consumer"), cwd=scratch)
    if said.strip() != a.version:
        sys.exit(f"the consumer saw version {said.strip()}, expected {a.version}")
    if a.way == "compiled":  # a program written against 0.5.0, with parts of its own
        said = run(os.path.join(build, "program", "own_parts"), cwd=scratch)
        if said.strip() != a.version:
            sys.exit(f"own_parts said: {said}")

    # Only the language level, folders and the macros of libraries that are here may reach a user's compile line, and -pthread
    # where no CMake target brings it. All four libraries are here (scripts/deps.sh).
    macros = ["-DGRADUS_PROTOZERO", "-DGRADUS_STB", "-DGRADUS_XSIMD", "-DGRADUS_ZLIB"]
    if a.way == "compiled":
        macros = ["-DGRADUS_COMPILED", inlined, *macros]
    for entry in json.load(open(os.path.join(build, "compile_commands.json"), encoding="utf-8")):
        if not entry["file"].startswith(here):  # a source of gradus::compiled, which is built for who links it
            continue
        words = shlex.split(entry["command"])[1:]
        if a.way == "pch":
            if not any(w.endswith("cmake_pch.hxx") for w in words):
                sys.exit(f"no precompiled header is used:\n{entry['command']}")
            of_pch = ("-Winvalid-pch", "-include", "-Xclang", "-include-pch", "-fpch-instantiate-templates")
            words = [w for w in words if w not in of_pch and not re.search(r"cmake_pch\.hxx(\.pch)?$", w)]
        skip = False
        for word in words:
            if skip:
                skip = False
            elif word in ("-o", "-c", "-isystem", "-I", "-MF", "-MT"):
                skip = True
            elif word not in (*macros, *flags, *(["-pthread"] if a.way == "pkg_config" else [])) and not re.match(r"-I|-std=(gnu|c)\+\+2[0-9a-z]$|-MD$", word):
                sys.exit(f"a flag leaked to the user: {word}\n{entry['command']}")
        if sorted(w for w in words if w.startswith("-DGRADUS")) != macros:
            sys.exit(f"expected {macros} on the user's compile line:\n{entry['command']}")

    built = [f for f in files_under(build) if "gradus_compiled" in f and f.endswith((".a", ".o"))]
    if bool(built) != (a.way == "compiled"):
        sys.exit(f"gradus::compiled is built where something links it, and only there; found {built}")

    run(a.cmake, "--install", build, env=environment)
    if files_under(theirs) != ["bin/consumer"]:
        sys.exit(f"the consumer's installation has files of ours: {files_under(theirs)}")
    if a.way == "deb" and superuser:
        run(*dpkg, "--purge", "libgradus-dev", env=environment)
        left = [f for f in files_under(root) if not f.startswith("var/")]
        if left or os.path.exists(os.path.join(root, "usr")):
            sys.exit(f"the package is gone and left {left or 'a folder usr'}")
print(f"{a.way}: built, ran, nothing leaked")
