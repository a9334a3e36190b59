// This header decides how the bodies of functions that are no templates reach a program. A header declares them and the
// .ipp file of the same name holds them. By default the header includes that file at its end, and they are inline. A
// program that links gradus::compiled is compiled with GRADUS_COMPILED: its own files see the declarations alone, and
// the library's files, include/gradus/compiled/*.cpp, hold the bodies.
#pragma once

#ifdef GRADUS_COMPILED
#define GRADUS_BODY
#else
#define GRADUS_BODY inline
#endif
