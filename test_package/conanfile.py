import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout


class GradusTestConan(ConanFile):
    settings = "os", "arch", "compiler", "build_type"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        options = self.dependencies["gradus"].options
        for name in ("xtensor", "cereal"):  # they have no macro: who includes their headers uses them
            if options.get_safe("with_" + name):
                toolchain.preprocessor_definitions["TEST_" + name.upper()] = 1
        toolchain.cache_variables["TEST_COMPILED"] = bool(options.compiled)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if can_run(self):
            self.run(os.path.join(self.cpp.build.bindir, "test_package"), env="conanrun")
