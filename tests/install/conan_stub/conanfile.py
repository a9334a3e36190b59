import os

from conan import ConanFile
from conan.tools.files import copy

# name: version, what it is of /usr/include, where it lies in the package, what is linked
STUBS = {
    "zlib": ("1.2.13", ["zlib.h", "zconf.h"], "", ["z"], "ZLIB::ZLIB", "ZLIB"),
    "protozero": ("1.7.1", ["protozero/*"], "", [], "protozero::protozero", "protozero"),
    "xsimd": ("8.1.0", ["xsimd/*"], "", [], "xsimd", "xsimd"),
    "xtensor": ("0.24.3", ["xtensor/*", "xtl/*"], "", [], "xtensor", "xtensor"),
    "cereal": ("1.3.2", ["cereal/*"], "", [], "cereal::cereal", "cereal"),
    "stb": ("cci.20220909", ["stb_*.h"], "stb", [], "stb::stb", "stb"),  # the index has it without a folder
}


class StubConan(ConanFile):
    """A library of this machine as the public index packs it: conan create . --name NAME."""
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"

    def set_version(self):  # another one: --version VERSION
        self.version = self.version or STUBS[self.name][0]

    def requirements(self):
        if self.name == "xtensor":  # the index' too wants one version of it
            self.requires(f"xsimd/{STUBS['xsimd'][0]}")

    def package_id(self):
        self.info.clear()

    def package(self):
        _, patterns, folder, _, _, _ = STUBS[self.name]
        for pattern in patterns:
            for root in ("/usr/include", "/usr/include/x86_64-linux-gnu"):
                copy(self, pattern, os.path.join(root, folder), os.path.join(self.package_folder, "include"))

    def package_info(self):
        _, _, _, libs, target, file = STUBS[self.name]
        self.cpp_info.bindirs = self.cpp_info.libdirs = []
        self.cpp_info.system_libs = libs
        self.cpp_info.set_property("cmake_target_name", target)
        self.cpp_info.set_property("cmake_file_name", file)
