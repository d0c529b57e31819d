/* tilus-explain's parts. A document of JSON (docs/explain.md) is collected first; the page is a
 * function of that document alone.
 *
 *     settings.c   the command line             figures.c   what ptxas says, and occupancy
 *     explain.c    the document, part by part   launch.c    given arguments: bytes and the floor
 *     passes.c     passes and remarks           doc.c       texts and members of JSON
 *     program.c    ops, values, layouts         place.c     numbers of scalars there
 *     hazards.c    synchronization              operations.c  of products, and the floor
 *     shared.c     shared memory                measured.c  results of tilus-run
 *     lines.c      PTX by lines of the text     casts.c     cast plans, bit by bit
 *     tiles.c      elements' places in memory   registers.c  live words of each op
 *     page*.c      the page, from page.html, .css, .js */
#ifndef TILUS_EXPLAIN_TOOL_H
#define TILUS_EXPLAIN_TOOL_H

#include "common/command_line.h"
#include "tilus/tilus.h"
#include "types/layout.h"

#include <jansson.h>
#include <stdio.h>

#define TOOL "tilus-explain"

/* The version of the document's form: a reader of version 1 reads later documents of version 1,
 * which may have more members. */
enum { EXPLAIN_VERSION = 1 };

typedef enum Form { FORM_HTML, FORM_JSON } Form;

typedef struct Settings {
    CommandLine line;           /* the first member, as command_line.h wants */
    const char *output;
    int form;                   /* Form */
    const char *cpu, *device;   /* device: its key, or NULL */
    const char *pipeline;       /* NULL: the default one */
    const char *ptxas, *nvdisasm;   /* paths, or NULL */
    double bandwidth;           /* of the floor, TB/s; 0: none */
    bool assemble;              /* ask ptxas, where it is */
    StringList args;            /* of --arg, NAME=VALUE */
    StringList measured;        /* files */
} Settings;

/* False: the tool ends with *status. The settings are then freed already. */
bool settings_parse(Settings *s, int argc, char **argv, int *status);
void settings_free(Settings *s);

/* The document while it is collected. References that it holds are released by explain_free. */
typedef struct Explain {
    const Settings *settings;
    char *text;                 /* of the input */
    size_t text_size;
    tilus_diag *diag;
    tilus_module *module;
    json_t *doc;
    json_t *remarks;            /* of doc, borrowed, as are these */
    json_t *layouts;
    const Layout **layout_list; /* those of `layouts`, by index */
    size_t layout_capacity;
    char *ptx, *sass;           /* sass: as nvdisasm prints it, or NULL */
    bool no_memory;             /* some member could not be made */
} Explain;

/* ---- doc.c -------------------------------------------------------------------- */

/* A JSON string of size bytes at `text`; bytes that are no UTF-8, and NULs, become U+FFFD. NULL
 * when memory runs out. */
json_t *doc_text_n(const char *text, size_t size);
json_t *doc_text(const char *text);
/* A JSON string, or null for NULL. */
json_t *doc_text_or_null(const char *text);
/* Sets a member, or adds an element, whose reference is taken; notes where memory runs out.
 * doc_put returns the value, borrowed. */
json_t *doc_put(Explain *e, json_t *object, const char *key, json_t *value);
void doc_add(Explain *e, json_t *array, json_t *value);
/* The string of a member, "" where there is none; and its integer, or 0. */
const char *doc_string(const json_t *object, const char *key);
json_int_t doc_integer(const json_t *object, const char *key);

/* ---- the document's parts: false after a message or a diagnostic ---------------- */

bool explain_passes(Explain *e);        /* runs them: "passes", "remarks" */
void explain_take_remark(void *explain, const tilus_remark *r);     /* adds it to "remarks" */
bool explain_hazards(Explain *e);       /* "hazards", and remarks of check-hazards */
bool explain_programs(Explain *e);      /* "programs", "layouts" */
bool explain_shared(Explain *e, const char *program, json_t *object);   /* "shared" of a program */
bool explain_registers(Explain *e, const char *program, json_t *object);    /* "registers" */
bool explain_casts(Explain *e);         /* "cast_plans", "casts" */
bool explain_compile(Explain *e);       /* makes e->ptx */
bool explain_figures(Explain *e);       /* asks ptxas: "ptxas", "occupancy" of programs; e->sass */
bool explain_lines(Explain *e);         /* "ptx", "sass", "lines" */
bool explain_launch(Explain *e);        /* "launch", where --arg gives arguments */
bool explain_tiles(Explain *e);         /* "tiles" and "view_of" of values */
bool explain_measured(Explain *e);      /* "measured" of programs, from --measured */
bool explain_files(Explain *e);         /* "files": the texts that ops and remarks name */
void explain_cures(Explain *e);         /* "kinds" of remarks: meaning and cure */

/* The name of the input in the document and in messages: <stdin> for -. */
const char *explain_input_name(const Settings *s);
/* Collects all of it. NULL after a message; the caller releases it. */
json_t *explain_make(const Settings *s);

/* ---- the page ------------------------------------------------------------------- */

/* The page of a document, malloc'ed; NULL when memory runs out. */
char *page_make(const json_t *doc, size_t *size);

/* Writes a text with <, >, &, " and ' as entities. */
void page_escape(FILE *out, const char *text);
/* Cells of a table's row: an integer, empty for anything else; code after a sigil ("%") or "". */
void page_number_cell(FILE *out, const json_t *number);
void page_code_cell(FILE *out, const char *sigil, const char *text);
/* The number of a file in the document; their count where it is not there. */
size_t page_file_number(const json_t *doc, const char *name);
/* Sections, one each. */
void page_text(FILE *out, const json_t *doc);
void page_missed(FILE *out, const json_t *doc);
void page_layouts(FILE *out, const json_t *doc);
void page_shared(FILE *out, const json_t *doc);
void page_registers(FILE *out, const json_t *doc);
void page_sync(FILE *out, const json_t *doc);
void page_casts(FILE *out, const json_t *doc);
void page_passes(FILE *out, const json_t *doc);

#endif
