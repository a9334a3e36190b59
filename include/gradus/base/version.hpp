// This header has the version of the library. It is the only place where the version is written: CMake and the package
// files read it here. The library uses semantic versioning; while MAJOR is 0, a new MINOR may change the interface
// (CHANGELOG.md describes the changes).
#pragma once

#define GRADUS_VERSION_MAJOR 0
#define GRADUS_VERSION_MINOR 6
#define GRADUS_VERSION_PATCH 0

#define GRADUS_TEXT_OF(x) #x
#define GRADUS_JOIN_VERSION(a, b, c) GRADUS_TEXT_OF(a) "." GRADUS_TEXT_OF(b) "." GRADUS_TEXT_OF(c)
// The version as text, "MAJOR.MINOR.PATCH".
#define GRADUS_VERSION GRADUS_JOIN_VERSION(GRADUS_VERSION_MAJOR, GRADUS_VERSION_MINOR, GRADUS_VERSION_PATCH)
