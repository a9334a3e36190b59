// How the bodies of functions that are no templates reach a program. x.hpp declares them and x.ipp holds them. By
// default x.hpp includes x.ipp at its end, and they are inline. A program that links gradus::compiled is compiled with
// GRADUS_COMPILED: its files see the declarations alone, and the library's own files (compiled/*.cpp) hold the bodies.
#pragma once

#ifdef GRADUS_COMPILED
#define GRADUS_BODY
#else
#define GRADUS_BODY inline
#endif
