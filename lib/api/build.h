/* Identifies this build of the compiler. */
#ifndef TILUS_API_BUILD_H
#define TILUS_API_BUILD_H

/* Tells this build from any other whose code differs: the version, the git revision and
 * the linker's build id, which also sees changes that are not committed. Static storage.
 * Thread safe. */
const char *build_identity(void);

#endif
