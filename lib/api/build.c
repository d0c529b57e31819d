/* Identifies this build of the compiler by the notes of the file that its code is in. */
#define _GNU_SOURCE
#include "api/build.h"

#include "tilus/tilus.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <threads.h>

enum { ID_BYTES = 32 };     /* of a build id that are shown; usual ones have 20 */

static char identity[160];

/* The hexadecimal digits of a build id, and whose. */
typedef struct Search {
    uintptr_t address;      /* in the file that is looked for */
    char digits[2 * ID_BYTES + 1];
} Search;

static void write_digits(Search *s, const unsigned char *id, size_t size)
{
    for (size_t i = 0; i < size && i < ID_BYTES; i++)
        snprintf(s->digits + 2 * i, 3, "%02x", id[i]);
}

/* Notes: name's length, description's length, type; name, description, each of them padded
 * to 4 bytes. */
static void read_notes(Search *s, const unsigned char *notes, size_t size)
{
    size_t at = 0;
    while (size - at >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, notes + at, sizeof note);
        const unsigned char *name = notes + at + sizeof note;
        size_t name_size = (note.n_namesz + (size_t)3) & ~(size_t)3;
        size_t id_size = (note.n_descsz + (size_t)3) & ~(size_t)3;
        size_t left = size - at - sizeof note;
        if (name_size > left || id_size > left - name_size)
            return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !memcmp(name, "GNU", 4))
            write_digits(s, name + name_size, note.n_descsz);
        at += sizeof note + name_size + id_size;
    }
}

static int visit_file(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    Search *s = data;
    bool ours = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        ours |= p->p_type == PT_LOAD && s->address - info->dlpi_addr - p->p_vaddr < p->p_memsz;
    }
    for (int i = 0; ours && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_NOTE)
            read_notes(s, (const unsigned char *)(info->dlpi_addr + p->p_vaddr), p->p_memsz);
    }
    return ours;
}

static void write_identity(void)
{
    Search search = {.address = (uintptr_t)identity};
    dl_iterate_phdr(visit_file, &search);
    snprintf(identity, sizeof identity, "%s %s %s", tilus_version(), tilus_git_revision(),
             search.digits);
}

const char *build_identity(void)
{
    static once_flag once = ONCE_FLAG_INIT;
    call_once(&once, write_identity);
    return identity;
}
