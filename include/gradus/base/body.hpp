// This header decides how the bodies of functions that are not templates get into a program. A header declares the
// functions, and the .ipp file of the same name has the bodies. By default the header includes that file at its end,
// and the functions are inline. A program that links gradus::compiled is compiled with GRADUS_COMPILED: its own files
// see only the declarations, and the library's files, include/gradus/compiled/*.cpp, have the bodies.
#pragma once

#ifdef GRADUS_COMPILED
#define GRADUS_BODY
#else
#define GRADUS_BODY inline
#endif
