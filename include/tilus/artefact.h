/* Artefacts: one compiled program in one file (.tilusk), self-contained: the launcher's
 * description of it, PTX for one target, machine code where ptxas was there, and the text
 * it came from. The compiler writes them, the runtime loads them; both by the functions
 * below, which need neither LLVM nor a driver.
 *
 * The format is docs/artefact.md's: little-endian, with a magic number, a version and a
 * checksum. Readers refuse what is damaged, cut short, newer than they are, or larger
 * than TILUS_ARTEFACT_MAX.
 *
 * Pointers are not NULL unless a comment says that they may be; tilus_artefact_write and
 * tilus_artefact_read refuse it (TILUS_ERROR_ARGUMENT). */
#ifndef TILUS_ARTEFACT_H
#define TILUS_ARTEFACT_H

#include "tilus/export.h"
#include "tilus/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TILUS_ARTEFACT_VERSION = 6,
    TILUS_ARTEFACT_MAX = 256 << 20      /* bytes */
};

typedef struct tilus_artefact {
    const tilus_kernel_info *info;
    const char *target;         /* "sm_90a" */
    unsigned ptx_version;       /* of the PTX: 80 for 8.0 */
    const char *ptx;            /* NUL-terminated */
    const void *cubin;          /* for exactly `target`; NULL where there was no ptxas */
    size_t cubin_size;          /* bytes */
    const char *source;         /* the program text that was compiled, or "" */
    const char *parameters;     /* of its templates, "W=u4 BK=64"; "" for none */
    const char *compiler;       /* "tilus 0.2.0, LLVM 22.1.0", or "" */
} tilus_artefact;

/* The parts of an artefact one by one, for callers that read no nested structs; `*size` of
 * machine code in bytes, which is NULL where there is none. All are owned by the artefact.
 * Thread safe. */
TILUS_API const tilus_kernel_info *tilus_artefact_kernel(const tilus_artefact *artefact);
TILUS_API const char *tilus_artefact_target(const tilus_artefact *artefact);
TILUS_API unsigned tilus_artefact_ptx_version(const tilus_artefact *artefact);
TILUS_API const char *tilus_artefact_ptx(const tilus_artefact *artefact);
TILUS_API const void *tilus_artefact_cubin(const tilus_artefact *artefact, size_t *size);
TILUS_API const char *tilus_artefact_source(const tilus_artefact *artefact);
TILUS_API const char *tilus_artefact_parameters(const tilus_artefact *artefact);
TILUS_API const char *tilus_artefact_compiler(const tilus_artefact *artefact);

/* The artefact as bytes, which the caller frees with tilus_free. TILUS_ERROR_ARGUMENT when it
 * is none that a reader takes (docs/artefact.md): a name, a target, a PTX version, PTX and
 * facts of the launch must be there, texts be UTF-8, and all of it fit in
 * TILUS_ARTEFACT_MAX; TILUS_ERROR_MEMORY; tilus_rt_error() (tilus/runtime.h) says why. Equal
 * artefacts give equal bytes. Thread safe. */
TILUS_API tilus_status tilus_artefact_write(const tilus_artefact *artefact, void **bytes,
                                            size_t *size);

/* Reads one from `bytes`, which may go away afterwards: `*out` is one block of its own,
 * which the caller frees with tilus_free. On failure it is NULL, and message[0..message_size)
 * says what is wrong: TILUS_ERROR_ARTEFACT; or TILUS_ERROR_MEMORY. Whatever the bytes
 * are, nothing outside of them is read. Thread safe. */
TILUS_API tilus_status tilus_artefact_read(const void *bytes, size_t size,
                                           tilus_artefact **out, char *message,
                                           size_t message_size);

#ifdef __cplusplus
}
#endif

#endif
