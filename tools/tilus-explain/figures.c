/* Registers by ptxas, and how many blocks a multiprocessor holds then. */
#define _GNU_SOURCE
#include "tool.h"

#include "common/ptxas.h"
#include "target/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Registers of a multiprocessor, in four parts; a warp takes them by REGISTER_UNIT. CUDA keeps
 * SHARED_RESERVED bytes of shared memory of each block, and a multiprocessor has as much more than
 * one block can take. */
enum { REGISTERS = 65536, PARTS = 4, REGISTER_UNIT = 256, SHARED_RESERVED = 1024 };

typedef struct Figures {
    unsigned stack, stores, loads, registers, barriers;
} Figures;

/* ---- ptxas ------------------------------------------------------------------- */

/* Finds the program's figures in the log of ptxas -v; false where it has none. */
static bool read_figures(const char *log, const char *program, Figures *f)
{
    char mark[320];
    snprintf(mark, sizeof mark, "Function properties for %s\n", program);
    const char *at = log ? strstr(log, mark) : NULL;
    if (!at || sscanf(at + strlen(mark), " %u bytes stack frame, %u bytes spill stores, %u bytes "
                      "spill loads", &f->stack, &f->stores, &f->loads) != 3)
        return false;
    at = strstr(at, "Used ");
    return at &&
           sscanf(at, "Used %u registers, used %u barriers", &f->registers, &f->barriers) >= 1;
}

static void put_registers(Explain *e, json_t *program, const Figures *f)
{
    json_t *object = json_object();
    doc_put(e, object, "registers", json_integer(f->registers));
    doc_put(e, object, "barriers", json_integer(f->barriers));
    doc_put(e, object, "stack", json_integer(f->stack));
    doc_put(e, object, "spill_stores", json_integer(f->stores));
    doc_put(e, object, "spill_loads", json_integer(f->loads));
    doc_put(e, program, "ptxas", object);
}

/* ---- occupancy -------------------------------------------------------------------------- */

/* Blocks that a multiprocessor of this target has room for at most. */
static int64_t most_blocks(const Target *t)
{
    return t->sm == 86 ? 16 : t->warps < 64 ? 24 : 32;
}

static int64_t blocks_by_registers(unsigned registers, int64_t warps)
{
    int64_t warp = ((int64_t)registers * 32 + REGISTER_UNIT - 1) / REGISTER_UNIT * REGISTER_UNIT;
    return warp ? REGISTERS / PARTS / warp * PARTS / warps : REGISTERS;
}

static void put_occupancy(Explain *e, json_t *program, const Figures *f, const Target *t)
{
    int64_t warps = (doc_integer(program, "threads") + 31) / 32;
    int64_t shared = (t->shared_bytes + SHARED_RESERVED) /
                     (doc_integer(program, "shared_bytes") + SHARED_RESERVED);
    const struct {
        const char *name;
        int64_t blocks;
    } bounds[] = {{"registers", blocks_by_registers(f->registers, warps)},
                  {"shared memory", shared},
                  {"warps", t->warps / warps},
                  {"blocks", most_blocks(t)}};
    size_t least = 0;
    json_t *object = json_object(), *all = json_object();
    for (size_t i = 0; i < COUNT(bounds); i++) {
        least = bounds[i].blocks < bounds[least].blocks ? i : least;
        doc_put(e, all, bounds[i].name, json_integer(bounds[i].blocks));
    }
    doc_put(e, object, "blocks", json_integer(bounds[least].blocks));
    doc_put(e, object, "warps", json_integer(bounds[least].blocks * warps));
    doc_put(e, object, "most_warps", json_integer(t->warps));
    doc_put(e, object, "limited_by", doc_text(bounds[least].name));
    doc_put(e, object, "bounds", all);
    doc_put(e, program, "occupancy", object);
}

/* ---- all programs ------------------------------------------------------------------------- */

/* The log of ptxas -v, malloc'ed, and e->sass; NULL where there is no ptxas, or it
 * refuses. */
static char *run_ptxas(Explain *e)
{
    char found[PTXAS_PATH], nvdisasm[PTXAS_PATH], why[PTXAS_PATH + 128], *log = NULL;
    size_t size;
    const Settings *s = e->settings;
    if (!s->assemble || (!s->ptxas && !ptxas_find(found, why, sizeof why)))
        return NULL;
    const char *ptxas = s->ptxas ? s->ptxas : found;
    char *cubin = ptxas_assemble(TOOL, ptxas, s->cpu, e->ptx, true, &size, &log);
    if (cubin && (s->nvdisasm || nvdisasm_find(ptxas, nvdisasm)))
        e->sass = nvdisasm_print(TOOL, s->nvdisasm ? s->nvdisasm : nvdisasm, cubin, size);
    free(cubin);
    return log;
}

bool explain_figures(Explain *e)
{
    size_t i;
    json_t *program;
    char *log = run_ptxas(e);
    const Target *t = target_find(e->settings->cpu);
    json_array_foreach(json_object_get(e->doc, "programs"), i, program) {
        Figures f = {0};
        bool found = read_figures(log, doc_string(program, "name"), &f);
        if (found) {
            put_registers(e, program, &f);
            put_occupancy(e, program, &f, t);
        } else {
            doc_put(e, program, "ptxas", json_null());
            doc_put(e, program, "occupancy", json_null());
        }
    }
    free(log);
    return !e->no_memory;
}
