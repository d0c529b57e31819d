/* The document, part by part. */
#define _GNU_SOURCE
#include "tool.h"

#include "common/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *explain_input_name(const Settings *s)
{
    return strcmp(s->line.input, "-") ? s->line.input : "<stdin>";
}

/* ---- the head ------------------------------------------------------------------- */

static json_t *list_defines(Explain *e)
{
    json_t *list = json_array();
    const CommandLine *line = &e->settings->line;
    for (size_t i = 0; i < line->define_count; i++) {
        json_t *one = json_object();
        doc_put(e, one, "name", doc_text(line->defines[i].name));
        doc_put(e, one, "value", doc_text(line->defines[i].value));
        doc_add(e, list, one);
    }
    return list;
}

static void put_head(Explain *e)
{
    json_t *compiler = json_object();
    doc_put(e, compiler, "version", doc_text(tilus_version()));
    doc_put(e, compiler, "llvm", doc_text(tilus_llvm_version()));
    doc_put(e, compiler, "revision", doc_text(tilus_git_revision()));
    doc_put(e, e->doc, "format", doc_text("tilus-explain"));
    doc_put(e, e->doc, "version", json_integer(EXPLAIN_VERSION));
    doc_put(e, e->doc, "compiler", compiler);
    doc_put(e, e->doc, "file", doc_text(explain_input_name(e->settings)));
    doc_put(e, e->doc, "target", doc_text(e->settings->cpu));
    doc_put(e, e->doc, "defines", list_defines(e));
    e->remarks = doc_put(e, e->doc, "remarks", json_array());
    e->layouts = doc_put(e, e->doc, "layouts", json_array());
}

/* ---- texts ------------------------------------------------------------------------ */

/* The lines of a text, as strings without their ends. */
static json_t *split_lines(Explain *e, const char *text, size_t length)
{
    json_t *lines = json_array();
    const char *end = text + length;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *stop = newline ? newline : end;
        size_t size = (size_t)(stop - text);
        doc_add(e, lines, doc_text_n(text, size - (size && stop[-1] == '\r')));
        text = newline ? newline + 1 : end;
    }
    return lines;
}

static void add_file(Explain *e, json_t *files, const char *name, const char *text, size_t size)
{
    json_t *file = json_object();
    doc_put(e, file, "name", doc_text(name));
    doc_put(e, file, "lines", split_lines(e, text, size));
    doc_add(e, files, file);
}

static bool has_file(const json_t *files, const char *name)
{
    size_t i;
    const json_t *file;
    json_array_foreach((json_t *)files, i, file)
        if (!strcmp(doc_string(file, "name"), name))
            return true;
    return false;
}

/* Adds the text of an imported file, which the parser has read just now. */
static void add_import(Explain *e, json_t *files, const char *name)
{
    char *text;
    size_t size;
    if (!*name || has_file(files, name) || !file_read(TOOL, name, TEXT_SIZE_MAX, &text, &size))
        return;
    add_file(e, files, name, text, size);
    free(text);
}

static void add_files_of(Explain *e, json_t *files, const json_t *list)
{
    size_t i;
    const json_t *one;
    json_array_foreach((json_t *)list, i, one)
        add_import(e, files, doc_string(one, "file"));
}

bool explain_files(Explain *e)
{
    json_t *files = json_array();
    size_t i;
    const json_t *program;
    add_file(e, files, explain_input_name(e->settings), e->text, e->text_size);
    add_files_of(e, files, e->remarks);
    json_array_foreach(json_object_get(e->doc, "programs"), i, program)
        add_files_of(e, files, json_object_get(program, "ops"));
    return doc_put(e, e->doc, "files", files) != NULL;
}

/* ---- meaning and cure ----------------------------------------------------------------- */

void explain_cures(Explain *e)
{
    json_t *kinds = json_object();
    tilus_remark_info info = {.struct_size = sizeof info};
    for (size_t i = 0; tilus_remark_at(i, &info); i++) {
        json_t *kind = json_object();
        doc_put(e, kind, "kind",
                doc_text(info.kind == TILUS_REMARK_PASSED ? "passed" : "missed"));
        doc_put(e, kind, "pass", doc_text(info.pass));
        doc_put(e, kind, "text", doc_text(info.text));
        doc_put(e, kind, "meaning", doc_text(info.meaning));
        doc_put(e, kind, "cure", doc_text_or_null(info.cure));
        doc_put(e, kinds, info.name, kind);
    }
    doc_put(e, e->doc, "kinds", kinds);
}

/* ---- all of it ------------------------------------------------------------------------ */

static bool open_module(Explain *e)
{
    const CommandLine *line = &e->settings->line;
    e->diag = tilus_diag_new();
    if (!e->diag)
        return false;
    limits_set(TOOL, &line->passes.limits, e->diag);
    import_paths_set(&line->passes.import_paths, e->diag);
    warnings_set(TOOL, &line->passes.warnings, e->diag);
    e->module = tilus_parse(e->diag, explain_input_name(e->settings), e->text, e->text_size, 1,
                            line->defines, line->define_count);
    return e->module != NULL;
}

static bool collect(Explain *e)
{
    put_head(e);
    explain_cures(e);
    return open_module(e) && explain_passes(e) && explain_programs(e) && explain_casts(e) &&
           explain_compile(e) && explain_figures(e) && explain_lines(e) && explain_launch(e) &&
           explain_tiles(e) && explain_measured(e) &&
           explain_hazards(e) && explain_files(e) && !e->no_memory;
}

static void explain_free(Explain *e)
{
    tilus_module_free(e->module);
    tilus_diag_free(e->diag);
    free(e->layout_list);
    free(e->ptx);
    free(e->sass);
    free(e->text);
}

json_t *explain_make(const Settings *s)
{
    Explain e = {.settings = s};
    if (!file_read(TOOL, s->line.input, TEXT_SIZE_MAX, &e.text, &e.text_size))
        return NULL;
    e.doc = json_object();
    bool ok = e.doc && collect(&e);
    if (e.diag)
        tilus_diag_write(e.diag, NULL, NULL);
    if (e.no_memory || !e.doc || !e.diag)
        fputs(TOOL ": error: out of memory\n", stderr);
    explain_free(&e);
    if (ok)
        return e.doc;
    json_decref(e.doc);
    return NULL;
}
