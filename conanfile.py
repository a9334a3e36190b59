import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy, load, save
from conan.tools.layout import basic_layout
from conan.tools.scm import Version

required_conan_version = ">=2.1"


# This recipe lies in the repository and packs it. In the public index it has besides `url`, `homepage` and a source() that
# takes a release from conandata.yml instead of exports_sources, and exact versions where the index wants them (it accepts
# ranges of few libraries, zlib among them). Of CMake's files one is packed, gradus_compiled.cmake, which adds a target.
class GradusConan(ConanFile):
    name = "gradus"
    description = "Train models inside the C++ program that uses them"
    license = "BSD-3-Clause"
    topics = ("machine-learning", "training", "optimizer", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    # README says what each library is for. A library that is asked for becomes a requirement and, where its use is
    # turned on by a macro (base/optional_library.hpp), a definition. The package is the same with every answer.
    #
    # compiled: the CMake target gradus::compiled is there too. Its files are compiled in the user's build and not by
    # this recipe, since they need the flags of that build: a type's namespace is named after them (base/build.hpp), and
    # what was compiled with other flags does not link. Conan sees the flags of a profile and none of a CMakeLists.txt.
    options = {
        "with_zlib": [True, False],
        "with_protozero": [True, False],
        "with_xsimd": [True, False],
        "with_xtensor": [True, False],
        "with_cereal": [True, False],
        "with_stb": [True, False],
        "compiled": [True, False],
    }
    # What a trainer uses when nobody says otherwise: it reads .gz files and writes event files.
    default_options = {
        "with_zlib": True,
        "with_protozero": True,
        "with_xsimd": False,
        "with_xtensor": False,
        "with_cereal": False,
        "with_stb": False,
        "compiled": False,
    }
    exports_sources = "include/*", "cmake/gradus_compiled.cmake", "LICENSE"
    no_copy_source = True

    def set_version(self):  # it is written once, in a header
        text = load(self, os.path.join(self.recipe_folder, "include", "gradus", "base", "version.hpp"))
        self.version = ".".join(re.findall(r"^#define GRADUS_VERSION_(?:MAJOR|MINOR|PATCH) +([0-9]+)", text, re.M))

    def layout(self):
        basic_layout(self)

    def requirements(self):
        wanted = {
            "zlib": "zlib/[>=1.2.11 <2]",
            "protozero": "protozero/[>=1.7 <2]",
            "xtensor": "xtensor/[>=0.24.3 <0.28]",  # before xsimd, whose version it may fix
            "xsimd": "xsimd/[>=8.1 <15]",
            "cereal": "cereal/[>=1.3.1 <2]",
            "stb": "stb/[>=cci.20210713]",
        }
        for name, reference in wanted.items():
            if self.options.get_safe("with_" + name):
                self.requires(reference, transitive_headers=True)

    def package_id(self):
        self.info.clear()

    def validate(self):
        compiler, version = str(self.settings.compiler), Version(self.settings.compiler.version)
        oldest = {"gcc": "12", "clang": "16"}
        if compiler == "msvc":
            raise ConanInvalidConfiguration(
                f"{self.ref} needs gcc 12 or newer or clang 16 or newer, and found msvc; set compiler in the profile")
        if compiler in oldest and version < oldest[compiler]:
            raise ConanInvalidConfiguration(
                f"{self.ref} needs {compiler} {oldest[compiler]} or newer, and found {compiler} {version}; "
                "install a newer compiler and set compiler.version in the profile")
        try:
            check_min_cppstd(self, 20)
        except ConanInvalidConfiguration as e:
            raise ConanInvalidConfiguration(
                f"{self.ref} needs C++20, and found compiler.cppstd={self.settings.get_safe('compiler.cppstd')}; "
                f"set compiler.cppstd=20 in the profile, or add -s compiler.cppstd=20 ({e})") from e

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(self, "*", os.path.join(self.source_folder, "include"), os.path.join(self.package_folder, "include"))
        # No package file: those are written by whoever uses the package. This one makes gradus::compiled.
        text = load(self, os.path.join(self.source_folder, "cmake", "gradus_compiled.cmake"))
        save(self, os.path.join(self.package_folder, "lib", "cmake", "gradus_compiled.cmake"),
             text + '\ngradus_add_compiled("${CMAKE_CURRENT_LIST_DIR}/../../include")\n')

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "gradus")
        self.cpp_info.set_property("cmake_target_name", "gradus::gradus")
        self.cpp_info.set_property("pkg_config_name", "gradus")
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.defines = ["GRADUS_" + name.upper() for name in ("zlib", "protozero", "stb", "xsimd")
                                 if self.options.get_safe("with_" + name)]
        if self.settings.os in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["pthread"]
        if self.options.compiled:
            self.cpp_info.set_property("cmake_build_modules", [os.path.join("lib", "cmake", "gradus_compiled.cmake")])
