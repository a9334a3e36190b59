#!/usr/bin/env python3
"""roads.py --road ROAD --cmake CMAKE --compiler COMPILER --source FOLDER: package managers' roads to the library.

    recipe   conanfile.py runs on stand-ins of Conan's functions: version, requirements, definitions, what is packed, what
             is refused. test_package is built from what was packed, as Conan's generators describe it.
    port     the CMake calls of packaging/vcpkg's portfile, with features on and off; its consumer finds what was installed.
    conan    the real clients, each option on and off; exit status 77 (skipped) where they are not on PATH. The foreign
    vcpkg    libraries are Debian's headers, packed by recipes of conan_stub and ports of vcpkg_stub beside this file, and
             the net is not asked. $GRADUS_VCPKG_OVERLAY is another folder of ports; if it is empty, vcpkg takes its own.
"""
import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import types

parser = argparse.ArgumentParser()
for name in ("road", "cmake", "compiler", "source"):
    parser.add_argument("--" + name, required=True)
a = parser.parse_args()
here = os.path.dirname(os.path.abspath(__file__))
LIBRARIES = ("zlib", "protozero", "xsimd", "xtensor", "cereal", "stb")
SWITCHED = ("zlib", "protozero", "xsimd", "stb")  # by a macro
DEFAULT = ("zlib", "protozero")
HEADERS = {  # one of each that test_package.cpp reads
    "zlib": "zlib.h", "protozero": "protozero/varint.hpp", "xsimd": "xsimd/config/xsimd_arch.hpp",
    "xtensor": "xtl/xtl_config.hpp", "cereal": "cereal/cereal.hpp", "stb": "stb_image_write.h"}
environment = {k: v for k, v in os.environ.items() if k not in ("CXXFLAGS", "CPPFLAGS", "LDFLAGS", "DESTDIR")}
common = [*(["-G", "Ninja"] if shutil.which("ninja") else []), f"-DCMAKE_CXX_COMPILER={a.compiler}"]
CHEAP = "-O0 -DGRADUS_INLINE=inline"  # forced inlining without an optimizer makes kernels of megabytes


def run(*command, expect_failure=False, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          **{"env": environment, **more})
    if (done.returncode != 0) != expect_failure:
        sys.exit(f"{shlex.join(command)} returned {done.returncode}:\n{done.stdout[-6000:]}")
    return done.stdout


def expect(right, what):
    if not right:
        sys.exit(f"not so: {what}")


def macros_of(names):
    return sorted("GRADUS_" + n.upper() for n in names if n in SWITCHED)


def version_of_header():
    text = open(os.path.join(a.source, "include/gradus/base/version.hpp"), encoding="utf-8").read()
    return ".".join(re.findall(r"^#define GRADUS_VERSION_(?:MAJOR|MINOR|PATCH) +(\d+)", text, re.M))


def files_under(folder):
    return sorted(os.path.relpath(os.path.join(d, n), folder) for d, _, names in os.walk(folder) for n in names)


def compile_line(build):
    entries = json.load(open(os.path.join(build, "compile_commands.json"), encoding="utf-8"))
    return next((shlex.split(e["command"]), e["directory"]) for e in entries if e["file"].endswith("test_package.cpp"))


def compile_line_macros(build):
    words, _ = compile_line(build)
    return sorted(w[2:] for w in words if w.startswith("-DGRADUS_") and not w.startswith("-DGRADUS_INLINE"))


def expect_headers(build, on, packages):
    """The program reads headers of the libraries `on`, of no others, and none of them from the compiler's own path."""
    words, folder = compile_line(build)
    at = words.index("-o")
    names = run(*words[:at], *words[at + 2:], "-M", cwd=folder).replace("\\\n", " ").split()
    for name, header in HEADERS.items():
        found = {os.path.realpath(os.path.join(folder, n)) for n in names if n.endswith("/" + header)}
        expect(bool(found) == (name in on), f"with {on} the program reads of {name}: {found}")
        expect(all(f.startswith(os.path.realpath(packages) + "/") for f in found), f"{found} is from {packages}")


class Refused(Exception):
    pass


def stand_in_for_conan():
    """As much of Conan as the recipe uses."""
    def copy(_, pattern, source, to):
        expect(pattern in ("*", "LICENSE"), f"the recipe copies {pattern}")
        if pattern == "*":
            shutil.copytree(source, to)
        else:
            os.makedirs(to, exist_ok=True)
            shutil.copy(os.path.join(source, pattern), to)

    def save(_, path, text):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, "w", encoding="utf-8").write(text)

    def check_min_cppstd(recipe, wanted):
        standard = recipe.settings.values.get("compiler.cppstd")
        if standard is None or int(standard.removeprefix("gnu")) < wanted:
            raise Refused(f"Current cppstd ({standard}) is lower than the required C++ standard ({wanted}).")

    class Version(str):
        def __lt__(self, other):
            return int(self) < int(other)

    class ConanFile:
        def requires(self, reference, transitive_headers=False):
            expect(transitive_headers, f"{reference} is seen by who includes the library's headers")
            self.required.append(reference)

    def module(name, **names):
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(names)

    module("conan", ConanFile=ConanFile)
    module("conan.errors", ConanInvalidConfiguration=Refused)
    module("conan.tools")
    module("conan.tools.build", check_min_cppstd=check_min_cppstd)
    module("conan.tools.files", copy=copy, save=save, load=lambda _, path: open(path, encoding="utf-8").read())
    module("conan.tools.layout", basic_layout=lambda _: None)
    module("conan.tools.scm", Version=Version)


class Settings:
    def __init__(self, compiler="gcc", version="12", cppstd="20"):
        self.values = {"compiler.cppstd": cppstd}
        self.os, self.compiler = "Linux", type("compiler", (str,), {"version": version})(compiler)

    def get_safe(self, name):
        return self.values.get(name)


def recipe_with(options=None, settings=None):
    text = open(os.path.join(a.source, "conanfile.py"), encoding="utf-8").read()
    names = {}
    exec(compile(text, "conanfile.py", "exec"), names)
    recipe = names["GradusConan"]()
    answers = {**recipe.default_options, **(options or {})}
    expect(set(answers) == set(recipe.options), "every option has a default, and there are no others")
    recipe.options = types.SimpleNamespace(**answers, get_safe=answers.get)
    recipe.settings, recipe.ref, recipe.required = settings or Settings(), "gradus/" + version_of_header(), []
    recipe.recipe_folder = recipe.source_folder = a.source
    properties = {}
    recipe.cpp_info = types.SimpleNamespace(set_property=properties.__setitem__, properties=properties)
    return recipe


def recipe(scratch):
    stand_in_for_conan()
    r = recipe_with()
    r.set_version()
    expect(r.version == version_of_header(), f"the recipe's version {r.version} is the header's")
    for on in ((), DEFAULT, LIBRARIES, *((name,) for name in LIBRARIES)):
        r = recipe_with({"with_" + name: name in on for name in LIBRARIES})
        r.validate(), r.requirements(), r.package_info()
        expect(sorted(x.split("/")[0] for x in r.required) == sorted(on), f"with {on} it requires {r.required}")
        expect(sorted(r.cpp_info.defines) == macros_of(on), f"with {on} it defines {r.cpp_info.defines}")
    refusals = ((Settings(version="11"), "needs gcc 12 or newer, and found gcc 11; install a newer compiler"),
                (Settings("clang", "15"), "needs clang 16 or newer, and found clang 15; install a newer compiler"),
                (Settings("msvc", "193"), "needs gcc 12 or newer or clang 16 or newer, and found msvc"),
                (Settings(cppstd="17"), "needs C++20, and found compiler.cppstd=17; set compiler.cppstd=20"),
                (Settings(cppstd=None), "needs C++20, and found compiler.cppstd=None; set compiler.cppstd=20"))
    for settings, words in refusals:
        try:
            recipe_with(settings=settings).validate()
        except Refused as e:
            expect(words in str(e), f"'{e}' has the words '{words}'")
        else:
            sys.exit(f"not refused: {words}")

    r = recipe_with({"compiled": True})
    r.package_folder = os.path.join(scratch, "package")
    r.package(), r.package_info()
    packed = files_under(r.package_folder)
    wanted = ["include/" + f for f in files_under(os.path.join(a.source, "include"))]
    wanted += ["lib/cmake/gradus_compiled.cmake", "licenses/LICENSE"]
    expect(packed == sorted(wanted), f"packed are the headers, the licence and one file: {set(packed) ^ set(wanted)}")
    # What CMakeDeps writes of it.
    modules = r.cpp_info.properties["cmake_build_modules"]
    with open(os.path.join(scratch, "gradusConfig.cmake"), "w", encoding="utf-8") as file:
        file.write(f"""find_package(ZLIB REQUIRED)
add_library({r.cpp_info.properties["cmake_target_name"]} INTERFACE IMPORTED)
set_target_properties(gradus::gradus PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "{r.package_folder}/include"
  INTERFACE_COMPILE_DEFINITIONS "{";".join(r.cpp_info.defines)}"
  INTERFACE_LINK_LIBRARIES "ZLIB::ZLIB;{";".join(r.cpp_info.system_libs)}")
include("{r.package_folder}/{modules[0]}")
""")
    build = os.path.join(scratch, "build")
    # gradus::compiled is there, and its files are compiled with the user's options. That they compile and link is what
    # install/compiled shows; here the headers alone are compiled.
    for compiled in ("ON", "OFF"):
        run(a.cmake, "-S", f"{a.source}/test_package", "-B", build, *common, f"-Dgradus_DIR={scratch}",
            f"-DTEST_COMPILED={compiled}", f"-DCMAKE_CXX_FLAGS={CHEAP}", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
        found = compile_line_macros(build)
        expect(("GRADUS_COMPILED" in found) == (compiled == "ON"), f"TEST_COMPILED={compiled} has {found}")
    run(a.cmake, "--build", build)
    print(run(os.path.join(build, "test_package")).strip())


def portfile_calls():
    """The options of vcpkg_cmake_configure, and the variable of each feature."""
    port = os.path.join(a.source, "packaging/vcpkg/ports/gradus")
    text = open(os.path.join(port, "portfile.cmake"), encoding="utf-8").read()
    options = re.findall(r"^ +(-D\S+)$", text, re.M)
    features = dict(re.findall(r"^ +(\w+) (GRADUS_WITH_\w+)$", text, re.M))
    manifest = json.load(open(os.path.join(port, "vcpkg.json"), encoding="utf-8"))
    expect(manifest["version"] == version_of_header(), f"the port's version {manifest['version']} is the header's")
    expect(sorted(features) == sorted(manifest["features"]) == sorted(LIBRARIES), "port and manifest have one list")
    expect(all(v == "GRADUS_WITH_" + k.upper() for k, v in features.items()), f"each feature has its option: {features}")
    expect(sorted(manifest["default-features"]) == sorted(DEFAULT), "the port's defaults are the recipe's")
    consumer = json.load(open(f"{here}/vcpkg_consumer/vcpkg.json", encoding="utf-8"))
    expect(sorted(consumer["features"]) == sorted(LIBRARIES), "the consumer can ask for each")
    return options, features


def port(scratch):
    options, features = portfile_calls()
    for on in ((), DEFAULT, LIBRARIES, ("xtensor",)):
        at = os.path.join(scratch, "_".join(on) or "none")
        answers = [f"-D{variable}={'ON' if name in on else 'OFF'}" for name, variable in features.items()]
        run(a.cmake, "-S", a.source, "-B", f"{at}/ours", *common, *options, *answers, f"-DCMAKE_INSTALL_PREFIX={at}/prefix")
        run(a.cmake, "--install", f"{at}/ours")
        os.rename(f"{at}/prefix", f"{at}/moved")
        run(a.cmake, "-S", f"{here}/vcpkg_consumer", "-B", f"{at}/build", *common, f"-DCMAKE_PREFIX_PATH={at}/moved",
            f"-DGRADUS_SOURCE={a.source}", f"-DCMAKE_CXX_FLAGS={CHEAP}")
        found = compile_line_macros(f"{at}/build")
        expect(found == macros_of(on), f"the port with {on} defines {found}")
        pc = open(f"{at}/moved/share/pkgconfig/gradus.pc", encoding="utf-8").read()
        found = sorted(re.findall(r"-D(GRADUS_\w+)", pc))
        expect(found == macros_of(on), f"gradus.pc of the port with {on} defines {found}")
    run(a.cmake, "--build", f"{scratch}/{'_'.join(DEFAULT)}/build")
    print(run(f"{scratch}/{'_'.join(DEFAULT)}/build/consumer").strip())
    # A package that was made with a library does not do without it, nor with a word that it does not know.
    without = run(a.cmake, "-S", f"{here}/vcpkg_consumer", "-B", f"{scratch}/away", *common,
                  f"-DCMAKE_PREFIX_PATH={scratch}/xtensor/moved", f"-DGRADUS_SOURCE={a.source}",
                  "-DCMAKE_DISABLE_FIND_PACKAGE_xtensor=ON", expect_failure=True)
    expect("was installed to be used with xtensor, which was not found" in re.sub(r"\s+", " ", without), without)
    for answer, words in (("XTENSOR=ON", "GRADUS_WITH_XTENSOR is ON, and xtensor was not found; install it"),
                          ("XTENSOR=MAYBE", "GRADUS_WITH_XTENSOR is 'MAYBE'; it may be AUTO, ON or OFF"),
                          ("XTENSORS=ON", "there is no option GRADUS_WITH_XTENSORS; there are GRADUS_WITH_XTENSOR, GRADUS_WITH_XSIMD,")):
        said = run(a.cmake, "-S", a.source, "-B", f"{scratch}/refused_{answer}", *common, *options, "-DGRADUS_WITH_" + answer,
                   "-DCMAKE_DISABLE_FIND_PACKAGE_xtensor=ON", expect_failure=True)
        expect(words in re.sub(r"\s+", " ", said), said)


def client(name):
    found = shutil.which(name)
    if not found:
        print(f"skipped: no {name} on PATH")
        sys.exit(77)
    print(run(found, "--version" if name == "conan" else "version").splitlines()[0])
    return found


def conan(scratch):
    conan = client("conan")
    environment["CONAN_HOME"] = f"{scratch}/home"
    environment["CXX"] = a.compiler
    environment["CMAKE_EXPORT_COMPILE_COMMANDS"] = "ON"
    run(conan, "profile", "detect", "--name", "here")
    run(conan, "remote", "disable", "*")
    source = f"{scratch}/source"  # Conan writes into test_package/
    for part in ("include", "cmake", "test_package"):
        shutil.copytree(f"{a.source}/{part}", f"{source}/{part}", ignore=shutil.ignore_patterns("build", "*.json"))
    for part in ("conanfile.py", "LICENSE"):
        shutil.copy(f"{a.source}/{part}", source)
    settings = ["-pr:a", "here", "-s", "compiler.cppstd=20", "-s", "build_type=Debug",
                "-c", f"tools.build:cxxflags={CHEAP.split()}"]
    if jobs := environment.get("CMAKE_BUILD_PARALLEL_LEVEL"):  # otherwise Conan takes all processors
        settings += ["-c", f"tools.build:jobs={jobs}"]
    for name in LIBRARIES:
        run(conan, "create", f"{here}/conan_stub", "--name", name, *settings)
    # xtensor wants an older one than this
    run(conan, "create", f"{here}/conan_stub", "--name", "xsimd", "--version", "9.0.0", *settings)

    def create(*words, **options):
        words = [*words, *(w for k, v in options.items() for w in ("-o", f"gradus/*:{k}={v}"))]
        return run(conan, "create", source, *settings, *words)

    def trained(on, **options):
        """Creates the package and its test_package, which trains; the macros of its compile line."""
        shutil.rmtree(f"{source}/test_package/build", ignore_errors=True)
        create(**options)
        build = next(d for d, _, names in os.walk(f"{source}/test_package/build") if "compile_commands.json" in names)
        expect_headers(build, on, f"{scratch}/home")
        return compile_line_macros(build)

    # What is off on, and what is on off: both train.
    for on, options in ((DEFAULT, {}), ([n for n in LIBRARIES if n not in DEFAULT],
                                        {"with_" + name: name not in DEFAULT for name in LIBRARIES})):
        found = trained(on, **options)
        expect(found == macros_of(on), f"the recipe with {on} defines {found}")
    print("the defaults and their opposites: created, trained")
    for name in LIBRARIES:
        said = create("-tf=", **{"with_" + name: name not in DEFAULT})
        expect((name + "/" in said.split("Requirements", 1)[1]) == (name not in DEFAULT), f"{name} is required:\n{said}")
        print(f"with_{name}={name not in DEFAULT}: created")
    found = trained(DEFAULT, compiled=True)
    expect(found == sorted(["GRADUS_COMPILED", *macros_of(DEFAULT)]), f"the recipe with compiled=True defines {found}")
    print("compiled=True: created, its files compiled, trained")
    for words, said_so in ((["-o", "&:with_telepathy=True"], "option 'with_telepathy' doesn't exist"),
                           (["-s", "compiler.cppstd=17"], "needs C++20, and found compiler.cppstd=17"),
                           (["-s", "compiler=gcc", "-s", "compiler.version=11"], "needs gcc 12 or newer, and found gcc 11")):
        said = run(conan, "create", source, *settings, *words, expect_failure=True)
        expect(said_so in said, f"{words} was refused without '{said_so}':\n{said}")
    # pkg-config, from what PkgConfigDeps writes
    run(conan, "install", f"--requires=gradus/{version_of_header()}", "-g", "PkgConfigDeps", "-of", f"{scratch}/pc", *settings)
    flags = run("pkg-config", "--cflags", "--libs", "gradus", env={**environment, "PKG_CONFIG_PATH": f"{scratch}/pc"})
    run(a.compiler, "-std=c++20", *CHEAP.split(), f"{source}/test_package/test_package.cpp", "-o", f"{scratch}/by_pc",
        *shlex.split(flags))
    print("PkgConfigDeps:", run(f"{scratch}/by_pc").replace("\n", "; "))


def vcpkg(scratch):
    vcpkg = client("vcpkg")
    root = environment.get("VCPKG_ROOT") or os.path.dirname(os.path.realpath(vcpkg))
    overlay = environment.get("GRADUS_VCPKG_OVERLAY", f"{here}/vcpkg_stub")
    environment.update(VCPKG_ROOT=root, VCPKG_BINARY_SOURCES="clear", VCPKG_DISABLE_METRICS="1",
                       XDG_CACHE_HOME=f"{scratch}/cache")
    environment.setdefault("VCPKG_DOWNLOADS", f"{scratch}/downloads")
    if overlay:  # then nothing is fetched, neither libraries nor tools
        environment.update(VCPKG_FORCE_SYSTEM_BINARIES="1", X_VCPKG_ASSET_SOURCES="clear;x-block-origin")
    overlays = [f"{a.source}/packaging/vcpkg/ports", *([overlay] if overlay else [])]
    install = ["--no-print-usage", f"--x-buildtrees-root={scratch}/trees", f"--x-packages-root={scratch}/packages"]
    losses = set()
    for on in ((), DEFAULT, LIBRARIES, *((name,) for name in LIBRARIES)):
        build = f"{scratch}/{'_'.join(on) or 'none'}"
        run(a.cmake, "-S", f"{here}/vcpkg_consumer", "-B", build, *common, f"-DCMAKE_CXX_FLAGS={CHEAP}",
            f"-DCMAKE_TOOLCHAIN_FILE={root}/scripts/buildsystems/vcpkg.cmake", f"-DGRADUS_SOURCE={a.source}",
            "-DVCPKG_OVERLAY_PORTS=" + ";".join(overlays), "-DVCPKG_MANIFEST_FEATURES=" + ";".join(on),
            "-DVCPKG_INSTALL_OPTIONS=" + ";".join(install))
        found = compile_line_macros(build)
        expect(found == macros_of(on), f"the port with {on} defines {found}")
        expect_headers(build, on, f"{build}/vcpkg_installed")
        run(a.cmake, "--build", build)
        said = run(f"{build}/consumer").strip().split("\n")
        losses.add(said[-1])
        print(*on or ("nothing",), "-", "; ".join(said), flush=True)
    expect(len(losses) == 1, f"the policy portable gives the same bits with each feature: {losses}")


with tempfile.TemporaryDirectory() as scratch:
    {"recipe": recipe, "port": port, "conan": conan, "vcpkg": vcpkg}[a.road](scratch)
print(f"{a.road}: done")
