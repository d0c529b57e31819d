/* The version of these headers; CMakeLists.txt reads the three numbers here. The version of the
 * library that runs is tilus_rt_version() (tilus/runtime.h), which may be newer: docs/abi.md says
 * what is kept. */
#ifndef TILUS_VERSION_H
#define TILUS_VERSION_H

#define TILUS_VERSION_MAJOR 0
#define TILUS_VERSION_MINOR 2
#define TILUS_VERSION_PATCH 0

/* One number that grows with the version: 200 for 0.2.0, 10203 for 1.2.3. */
#define TILUS_VERSION_NUMBER(major, minor, patch) ((major) * 10000 + (minor) * 100 + (patch))
#define TILUS_VERSION \
    TILUS_VERSION_NUMBER(TILUS_VERSION_MAJOR, TILUS_VERSION_MINOR, TILUS_VERSION_PATCH)

/* True, also in #if, when the headers are of this version or a later one. */
#define TILUS_VERSION_AT_LEAST(major, minor, patch) \
    (TILUS_VERSION >= TILUS_VERSION_NUMBER(major, minor, patch))

/* "0.2.0" */
#define TILUS_VERSION_TEXT_(a, b, c) #a "." #b "." #c
#define TILUS_VERSION_TEXT(a, b, c) TILUS_VERSION_TEXT_(a, b, c)
#define TILUS_VERSION_STRING \
    TILUS_VERSION_TEXT(TILUS_VERSION_MAJOR, TILUS_VERSION_MINOR, TILUS_VERSION_PATCH)

#endif
