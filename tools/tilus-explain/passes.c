/* Passes, one at a time: the text after each, its time, and the remarks that it gives. */
#define _GNU_SOURCE
#include "tool.h"

#include "support/clock.h"
#include "support/diff.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- remarks ----------------------------------------------------------------------- */

static json_t *argument_value(const tilus_remark_argument *a)
{
    return a->type == TILUS_REMARK_INTEGER ? json_integer(a->integer)
           : a->type == TILUS_REMARK_REAL  ? json_real(a->real)
                                           : doc_text(a->text);
}

static json_t *list_arguments(Explain *e, const tilus_remark *r)
{
    json_t *arguments = json_object();
    for (size_t i = 0; i < r->argument_count; i++)
        doc_put(e, arguments, r->arguments[i].name, argument_value(&r->arguments[i]));
    return arguments;
}

/* Unrolled copies of an op give the same remark, which is kept once. */
static bool is_known(const json_t *remarks, const json_t *remark)
{
    enum { LOOK_BACK = 64 };
    size_t count = json_array_size(remarks), first = count > LOOK_BACK ? count - LOOK_BACK : 0;
    for (size_t i = first; i < count; i++)
        if (json_equal(json_array_get(remarks, i), remark))
            return true;
    return false;
}

void explain_take_remark(void *explain, const tilus_remark *r)
{
    Explain *e = explain;
    json_t *remark = json_object();
    doc_put(e, remark, "kind", doc_text(r->kind == TILUS_REMARK_PASSED ? "passed" : "missed"));
    doc_put(e, remark, "pass", doc_text(r->pass));
    doc_put(e, remark, "name", doc_text(r->name));
    doc_put(e, remark, "program", doc_text(r->program));
    doc_put(e, remark, "file", doc_text(r->file));
    doc_put(e, remark, "line", json_integer(r->line));
    doc_put(e, remark, "column", json_integer(r->column));
    doc_put(e, remark, "text", doc_text(r->text));
    doc_put(e, remark, "args", list_arguments(e, r));
    if (is_known(e->remarks, remark))
        json_decref(remark);
    else
        doc_add(e, e->remarks, remark);
}

/* ---- differences --------------------------------------------------------------------- */

static void write_to_file(void *file, const char *text, size_t length)
{
    fwrite(text, 1, length, file);
}

/* The lines that differ, as `diff -u` shows them; malloc'ed, NULL when memory runs out. */
static char *difference(const char *before, const char *after)
{
    char *text = NULL;
    size_t size;
    OutOfMemory oom;
    Arena scratch;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        return NULL;
    arena_init(&scratch, &oom);
    bool ok = !setjmp(oom.jump);
    if (ok)
        diff_write(&(Writer){write_to_file, file}, &scratch, before, after);
    arena_free(&scratch);
    if (fclose(file) == 0 && ok)
        return text;
    free(text);
    return NULL;
}

/* ---- passes -------------------------------------------------------------------------- */

/* The end of the first pass of a pipeline, with the options in its braces. */
static size_t pass_length(const char *pipeline)
{
    size_t n = 0;
    for (bool inside = false; pipeline[n] && (inside || pipeline[n] != ','); n++)
        inside = pipeline[n] == '{' || (inside && pipeline[n] != '}');
    return n;
}

static void add_pass(Explain *e, json_t *passes, const char *name, double seconds,
                     const char *before, const char *after)
{
    json_t *pass = json_object();
    bool changed = strcmp(before, after) != 0;
    char *diff = changed ? difference(before, after) : NULL;
    doc_put(e, pass, "pass", doc_text(name));
    doc_put(e, pass, "seconds", json_real(seconds));
    doc_put(e, pass, "changed", json_boolean(changed));
    doc_put(e, pass, "diff", changed ? doc_text_or_null(diff) : json_null());
    doc_put(e, pass, "text", changed ? doc_text(after) : json_null());
    doc_add(e, passes, pass);
    free(diff);
}

/* Runs one pass; `*text` is the module's text, which it replaces. */
static bool run_pass(Explain *e, json_t *passes, const char *name, char **text)
{
    tilus_pass_options options = e->settings->line.passes.options;
    options.remark = explain_take_remark;
    options.remark_data = e;
    double start = clock_seconds();
    if (!tilus_run_passes(e->module, name, &options))
        return false;
    double seconds = clock_seconds() - start;
    char *after = tilus_print(e->module);
    if (!after)
        return !(e->no_memory = true);
    add_pass(e, passes, name, seconds, *text, after);
    free(*text);
    *text = after;
    return true;
}

static bool run_pipeline(Explain *e, json_t *passes, const char *pipeline, char **text)
{
    for (size_t n; *pipeline; pipeline += n + (pipeline[n] == ',')) {
        n = pass_length(pipeline);
        char *name = strndup(pipeline, n);
        bool ok = name && run_pass(e, passes, name, text);
        e->no_memory |= !name;
        free(name);
        if (!ok)
            return false;
    }
    return true;
}

bool explain_passes(Explain *e)
{
    const char *given = e->settings->pipeline;
    char *text = tilus_print(e->module);
    json_t *passes = doc_put(e, e->doc, "passes", json_array());
    if (!text || !passes)
        return !(e->no_memory = true);
    doc_put(e, e->doc, "input", doc_text(text));
    bool ok = run_pipeline(e, passes, given ? given : tilus_default_pipeline(), &text);
    free(text);
    return ok;
}
