/* The bytes of an artefact (docs/artefact.md), as its writer, its reader and their tests
 * know them. Numbers are little-endian.
 *
 *   0     magic
 *   8     u32 version
 *   12    u32 checksum: CRC-32 of all bytes but these four
 *   16    u64 size of the whole
 *   24    u64 0
 *   32    the sections, in the order of their numbers, each at a multiple of 16:
 *           u32 number, u32 0, u64 size, so many bytes, zeros up to the next
 */
#ifndef TILUS_RUNTIME_ARTEFACT_FORMAT_H
#define TILUS_RUNTIME_ARTEFACT_FORMAT_H

#include "tilus/artefact.h"

#define ARTEFACT_MAGIC "\x89TILUSK\n"

enum {
    ARTEFACT_AT_VERSION = 8,
    ARTEFACT_AT_CHECKSUM = 12,
    ARTEFACT_AT_SIZE = 16,
    ARTEFACT_AT_ZERO = 24,
    ARTEFACT_HEADER = 32,
    ARTEFACT_SECTION_HEAD = 16,
    ARTEFACT_ALIGN = 16,
    ARTEFACT_CODE = 9           /* bytes of one code of an expression: u8 kind, i64 value */
};

typedef enum ArtefactSection {
    SECTION_INFO,
    SECTION_TARGET,
    SECTION_PTX_VERSION,
    SECTION_PTX,
    SECTION_CUBIN,
    SECTION_SOURCE,
    SECTION_PARAMETERS,
    SECTION_COMPILER,
    SECTION_COUNT
} ArtefactSection;

/* The checksum that belongs at ARTEFACT_AT_CHECKSUM; there are at least ARTEFACT_HEADER
 * bytes. */
uint32_t artefact_checksum(const unsigned char *bytes, size_t size);

/* Returns true when an artefact can be launched, whatever wrote it: checks names, kinds,
 * facts, codes and limits. Its texts are NUL-terminated or NULL. After false,
 * message[0..size) says why. */
bool artefact_check(const tilus_artefact *artefact, char *message, size_t size);
/* The part of it that is about the description, which launches are made of. */
bool artefact_check_info(const tilus_kernel_info *info, char *message, size_t size);

#endif
