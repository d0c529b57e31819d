/* Places of PTX. LLVM 22 writes no `inlined_at` for NVPTX, but tells in a comment what a NUMBERED
 * location is inlined at, the number of a frame: of an op of @silu, which is called on line 15,
 *
 *     .loc 1 2 16     // t:2:16 @[ t:4:0 ]
 *
 * becomes (PTX ISA, .loc: the place of the call comes first)
 *
 *     .loc 1 15 8
 *     .loc 1 2 16, function_name $L__function3, inlined_at 1 15 8
 */
#define _GNU_SOURCE
#include "codegen/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* PTX that is written anew. */
typedef struct Rewrite {
    const Diag *diag;
    FILE *out;
    const SourceText **files;   /* that have numbers, from 1 */
    unsigned file_count;
    bool *named;                /* functions whose names are needed, by their first frame */
    bool any_named;
} Rewrite;

static unsigned file_number(Rewrite *r, Loc loc)
{
    const SourceText *file = diag_source(r->diag, loc);
    unsigned i = 0;
    while (i < r->file_count && r->files[i] != file)
        i++;
    if (i == r->file_count)
        r->files[r->file_count++] = file;
    return i + 1;
}

/* "1 2 16" */
static void add_place(Rewrite *r, Loc loc)
{
    fprintf(r->out, "%u %u %u", file_number(r, loc), loc.line, loc.column);
}

static void add_loc(Rewrite *r, Loc loc)
{
    const SourceFrame *f = loc.frame ? &r->diag->frames[loc.frame] : NULL;
    bool inlined = f && f->function;
    if (inlined)
        add_loc(r, f->from);
    fputs("\t.loc\t", r->out);
    add_place(r, loc);
    if (inlined) {
        uint32_t first = f->first ? f->first : loc.frame;
        fprintf(r->out, ", function_name $L__function%u, inlined_at ", first);
        add_place(r, f->from);
        r->named[first] = r->any_named = true;
    }
    fputs("\n", r->out);
}

/* Reads "\t.loc\t1 LINE COLUMN  // t:LINE:COLUMN @[ t:NUMBER:0 ]"; frame 0 in the comment: LLVM
 * has merged ops of several places. */
static bool read_loc(const char *line, const char *end, Loc *loc)
{
    static const char begin[] = "\t.loc\t1 ", at[] = " @[ " LINES_FILE ":";
    char *rest;
    if ((size_t)(end - line) < sizeof begin || memcmp(line, begin, sizeof begin - 1) != 0)
        return false;
    *loc = (Loc){.line = (uint32_t)strtoul(line + sizeof begin - 1, &rest, 10)};
    loc->column = (uint32_t)strtoul(rest, &rest, 10);
    const char *frame = memmem(rest, (size_t)(end - rest), at, sizeof at - 1);
    uint32_t number = frame ? (uint32_t)strtoul(frame + sizeof at - 1, NULL, 10) : 0;
    loc->frame = number ? number - 1 : 0;
    if (!number)
        loc->line = loc->column = 0;
    return true;
}

static void rewrite_line(Rewrite *r, const char *line, const char *end)
{
    static const char file[] = "\t.file\t";
    Loc loc;
    if (read_loc(line, end, &loc))
        add_loc(r, loc);
    else if ((size_t)(end - line) < sizeof file || memcmp(line, file, sizeof file - 1) != 0)
        fwrite(line, 1, (size_t)(end - line), r->out);
}

/* Adds a file's name. ptxas takes ASCII alone, knows no escaped quote, and splits paths at a
 * backslash: such bytes are percent-encoded, as in URIs (RFC 3986, section 2.1). */
static void add_name(Rewrite *r, const char *name)
{
    for (; *name; name++)
        if (*name < ' ' || *name > '~' || strchr("\"\\%", *name))
            fprintf(r->out, "%%%02X", (unsigned char)*name);
        else
            fputc(*name, r->out);
}

/* Adds the table of files, whose names are in quotes. */
static void add_files(Rewrite *r)
{
    for (unsigned i = 0; i < r->file_count; i++) {
        fprintf(r->out, "\t.file\t%u \"", i + 1);
        add_name(r, r->files[i]->file ? r->files[i]->file : "");
        fputs("\"\n", r->out);
    }
}

/* Adds the names of functions, by labels. */
static void add_names(Rewrite *r)
{
    if (!r->any_named)
        return;
    fputs("\t.section\t.debug_str\n\t{\n", r->out);
    for (uint32_t i = 0; i < r->diag->frame_count; i++) {
        if (!r->named[i])
            continue;
        fprintf(r->out, "$L__function%u:\n", i);
        for (const char *s = r->diag->frames[i].function; *s; s++)
            fprintf(r->out, ".b8 %u\n", (unsigned char)*s);
        fputs(".b8 0\n", r->out);
    }
    fputs("\t}\n", r->out);
}

static void rewrite(Rewrite *r, const char *ptx)
{
    for (const char *line = ptx, *end; *line; line = end) {
        end = strchrnul(line, '\n');
        end += *end == '\n';
        rewrite_line(r, line, end);
    }
    add_files(r);
    add_names(r);
}

/* Takes memory from the heap alone: no arena may jump while the caller holds LLVM's PTX. */
char *lines_write(const Diag *diag, const char *ptx)
{
    char *text = NULL;
    size_t size, frames = diag->frame_count + 1;
    Rewrite r = {.diag = diag, .files = calloc(frames, sizeof *r.files),
                 .named = calloc(frames, sizeof *r.named)};
    r.out = r.files && r.named ? open_memstream(&text, &size) : NULL;
    if (r.out)
        rewrite(&r, ptx);
    bool failed = !r.out || ferror(r.out);
    if (r.out && (fclose(r.out) != 0 || failed)) {
        free(text);
        text = NULL;
    }
    free(r.files);
    free(r.named);
    return text;
}

bool lines_have_calls(const Codegen *cg)
{
    for (uint32_t i = 1; cg->lines && i < cg->diag->frame_count; i++)
        if (cg->diag->frames[i].function)
            return true;
    return false;
}
