/* The compiler's results of a text: messages, types after infer-layouts, remarks of the default
 * pipeline. A broken text gives what the parser could read. */
#include "lsp.h"

#include "ir/text.h"
#include "ir/verify.h"
#include "support/remark.h"
#include "syntax/syntax.h"
#include "types/layout.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWN_MOST = 512, DRAWN_COLUMNS = 32 };

static bool is_in_main(const Diag *diag, Loc loc)
{
    return diag_source(diag, loc) == diag_source(diag, (Loc){0});
}

/* ---- values --------------------------------------------------------------------------- */

/* Notes a value that the main text binds. */
static void note_value(Analysis *a, const Value *v)
{
    if (!v->name || !v->type || !v->loc.line || !is_in_main(a->diag, v->loc))
        return;
    const ValueNote note = {.offset = document_loc_offset(a->document, v->loc), .value = v,
                            .open = (v->type->kind == TYPE_REG || v->type->kind == TYPE_SHARED) &&
                                    type_is_open(v->type)};
    LSP_PUSH(a->values, a->value_count, a->value_capacity, note);
}

static bool note_op(Op *op, void *data)
{
    for (unsigned i = 0; i < op->result_count; i++)
        note_value(data, op->results[i]);
    for (unsigned i = 0; i < op->region_count; i++)
        for (unsigned k = 0; k < op->regions[i]->arg_count; k++)
            note_value(data, op->regions[i]->args[k]);
    return true;
}

static int compare_notes(const void *x, const void *y)
{
    const ValueNote *a = x, *b = y;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

static void note_values(Analysis *a)
{
    for (Program *p = a->module->programs; p; p = p->next) {
        for (unsigned i = 0; i < p->arg_count; i++)
            note_value(a, p->args[i]);
        region_walk(p->body, note_op, a);
    }
    if (a->value_count)
        qsort(a->values, a->value_count, sizeof *a->values, compare_notes);
}

static const char *layout_text(Module *m, const Layout *l)
{
    Text t;
    text_init(&t, &m->arena);
    layout_print(&t, l);
    return text_string(&t);
}

static bool can_be_drawn(const Layout *l)
{
    int64_t elements = 1;
    for (unsigned d = 0; d < l->rank; d++)
        elements = elements > DRAWN_MOST ? elements : elements * l->shape[d];
    return elements <= DRAWN_MOST && l->shape[l->rank - 1] <= DRAWN_COLUMNS;
}

/* Spells the types as they are now. */
static void spell_types(Analysis *a)
{
    for (size_t i = 0; i < a->value_count; i++) {
        ValueNote *n = &a->values[i];
        const Type *t = n->value->type;
        n->type = type_text(a->module, t);
        bool has_layout = t->kind == TYPE_REG && t->layout;
        n->layout = has_layout ? layout_text(a->module, t->layout) : NULL;
        n->drawn = has_layout && can_be_drawn(t->layout) ? t->layout : NULL;
    }
}

const ValueNote *analysis_values(const Analysis *a, size_t offset, size_t *count)
{
    size_t least = 0, most = a->value_count;
    while (least < most) {
        size_t middle = least + (most - least) / 2;
        if (a->values[middle].offset < offset)
            least = middle + 1;
        else
            most = middle;
    }
    const ValueNote *first = a->values + least, *end = a->values + a->value_count, *v = first;
    while (v < end && v->offset == offset && v->type)
        v++;
    *count = (size_t)(v - first);
    return *count ? first : NULL;
}

void analysis_draw(Analysis *a, const Layout *l, Buffer *out)
{
    if (setjmp(a->diag->oom.jump))
        return;
    Text t;
    text_init(&t, &a->module->arena);
    layout_draw_text(&t, l);
    buffer_add(out, text_string(&t));
}

/* ---- running -------------------------------------------------------------------------- */

/* The general cure of a remark that names none itself, or NULL. */
static const char *cure_of(const tilus_remark *r)
{
    RemarkId id = remark_find(r->name);
    bool named = id == REMARK_COUNT;
    for (size_t i = 0; i < r->argument_count; i++)
        named |= !strcmp(r->arguments[i].name, "Cure") || !strcmp(r->arguments[i].name, "Fact");
    return named ? NULL : remark_info[id].cure;
}

static void take_remark(void *data, const tilus_remark *r)
{
    Analysis *a = data;
    if (!r->line || strcmp(r->file, a->document->path))
        return;
    const RemarkNote note = {r->line, r->kind == TILUS_REMARK_MISSED,
                             lsp_strndup(r->text, strlen(r->text)),
                             lsp_strndup(r->program ? r->program : "",
                                         r->program ? strlen(r->program) : 0),
                             cure_of(r)};
    for (size_t i = 0; i < a->remark_count; i++)
        if (a->remarks[i].line == note.line && !strcmp(a->remarks[i].text, note.text) &&
            !strcmp(a->remarks[i].program, note.program)) {
            free(note.text), free(note.program);
            return;
        }
    LSP_PUSH(a->remarks, a->remark_count, a->remark_capacity, note);
}

/* Reads the text; false where it has errors. */
static bool read_module(Analysis *a, const tilus_define *given, size_t count)
{
    if (setjmp(a->diag->oom.jump))
        return false;
    Define *defines = arena_array(&a->module->arena, Define, count + 1);
    for (size_t i = 0; i < count; i++)
        defines[i] = (Define){given[i].name, given[i].value};
    const Document *d = a->document;
    diag_set_source(a->diag, d->path, d->text, d->len, 1);
    bool ok = parse_module(a->module, defines, count) && verify_module(a->module);
    note_values(a);
    return ok;
}

static void spell_types_guarded(Analysis *a)
{
    if (!setjmp(a->diag->oom.jump))
        spell_types(a);
}

/* Runs the default pipeline: its first pass alone, after which types are complete. */
static void run_passes(Analysis *a, const Configuration *c)
{
    const char *pipeline = tilus_default_pipeline(), *rest = strchr(pipeline, ',');
    const tilus_pass_options options = {.struct_size = sizeof options, .target = c->target,
                                        .remark = take_remark, .remark_data = a};
    char *first = lsp_strndup(pipeline, rest ? (size_t)(rest - pipeline) : strlen(pipeline));
    bool ok = tilus_run_passes(a->module, first, &options);
    free(first);
    spell_types_guarded(a);
    if (ok && rest)
        tilus_run_passes(a->module, rest + 1, &options);
}

/* The parameters of the configuration that the text has, which the caller frees: others are of
 * other files. */
static tilus_define *matching_defines(const Configuration *c, const Names *n, size_t *count)
{
    tilus_define *defines = lsp_alloc((c->define_count + 1) * sizeof *defines);
    *count = 0;
    for (size_t i = 0; i < c->define_count; i++) {
        const char *name = c->defines[i].name;
        const Name *known = names_find_global(n, name, strlen(name), CLASS_PARAM);
        if (known && known->kind == NAME_PARAM)
            defines[(*count)++] = c->defines[i];
    }
    return defines;
}

/* The text of a file that is open. */
static const char *open_text(void *data, const char *path, size_t *len)
{
    const Document *d = server_file(data, path);
    *len = d ? d->len : 0;
    return d ? d->text : NULL;
}

/* Tells whether a compile that nobody asked for gives way to a message; looks now and then. */
static bool is_stopped(void *data)
{
    enum { OPS = 64 };
    Server *s = data;
    return s->publishing && ++s->asked % OPS == 0 && (s->stopped = wire_waits(s->in));
}

static void prepare_diag(tilus_diag *diag, Server *s)
{
    const Configuration *c = &s->configuration;
    for (size_t i = 0; i < c->import_path_count; i++)
        tilus_add_import_path(diag, c->import_paths[i]);
    diag->host = (DiagHost){open_text, is_stopped, s};
    diag_set_limit(diag, LIMIT_ID_MILLISECONDS, c->milliseconds);
}

static void analyze(Analysis *a, Server *s)
{
    size_t count;
    tilus_define *defines = matching_defines(&s->configuration, &a->document->names, &count);
    prepare_diag(a->diag, s);
    bool ok = read_module(a, defines, count);
    free(defines);
    if (ok)
        run_passes(a, &s->configuration);
    else
        spell_types_guarded(a);
    a->cut = s->configuration.milliseconds && !a->diag->deadline;
    a->diag->deadline = 0;
    a->diag->host = (DiagHost){0};
}

Analysis *analysis_of(Server *s, Document *d)
{
    if (d->analysis)
        return d->analysis;
    Analysis *a = d->analysis = lsp_alloc(sizeof *a);
    a->document = d;
    a->diag = tilus_diag_new();
    a->module = a->diag ? module_new(a->diag) : NULL;
    if (!a->module) {
        fputs("tilus-lsp: error: out of memory\n", stderr);
        exit(1);
    }
    analyze(a, s);
    return a;
}

char *analysis_draw_name(Server *s, const Document *d, const char *layout)
{
    size_t count;
    tilus_diag *diag = tilus_diag_new();
    tilus_define *defines = matching_defines(&s->configuration, &d->names, &count);
    if (diag)
        prepare_diag(diag, s);
    char *drawing = diag ? tilus_text_layout_draw(diag, d->path, d->text, d->len, defines, count,
                                                  layout, TILUS_DRAWING_TEXT)
                         : NULL;
    free(defines);
    tilus_diag_free(diag);
    return drawing;
}

void analysis_free(Analysis *a)
{
    if (!a)
        return;
    module_free(a->module);
    tilus_diag_free(a->diag);
    for (size_t i = 0; i < a->remark_count; i++) {
        free(a->remarks[i].text);
        free(a->remarks[i].program);
    }
    free(a->remarks);
    free(a->values);
    free(a);
}

/* ---- diagnostics ----------------------------------------------------------------------- */

/* The range of a message: of its place, or of what in the main text leads there. */
static json_t *message_range(const Analysis *a, Loc loc)
{
    const Document *d = a->document;
    if (!is_in_main(a->diag, loc))
        loc = diag_root(a->diag, loc);
    size_t begin = document_loc_offset(d, loc), end = begin + (loc.line ? loc.length : 0);
    size_t line_end = document_line_end(d, document_line_of(d, begin));
    end = end > line_end ? line_end : end;
    return document_range(d, begin, end > begin ? end : begin);
}

static json_t *message_text(const Analysis *a, const Message *m)
{
    Buffer b = {0};
    if (!is_in_main(a->diag, m->loc))
        buffer_printf(&b, "%s:%u:%u: ", diag_source(a->diag, m->loc)->file, m->loc.line,
                      m->loc.column);
    buffer_add(&b, m->text);
    return buffer_json(&b);
}

/* The place of a note: a file and a range in it. */
static json_t *note_location(const Analysis *a, Loc loc)
{
    if (is_in_main(a->diag, loc))
        return json_pack("{s:o,s:o}", "uri", text_json(a->document->uri, strlen(a->document->uri)),
                         "range", message_range(a, loc));
    char *uri = path_to_uri(diag_source(a->diag, loc)->file);
    int line = (int)loc.line - 1, column = (int)loc.column - 1;
    json_t *location = json_pack("{s:o,s:{s:{s:i,s:i},s:{s:i,s:i}}}", "uri",
                                 text_json(uri, strlen(uri)), "range", "start", "line", line,
                                 "character", column, "end", "line", line, "character",
                                 column + (int)loc.length);
    free(uri);
    return location;
}

static void add_note(const Analysis *a, json_t *diagnostic, const Message *m)
{
    json_t *related = json_object_get(diagnostic, "relatedInformation");
    if (!related) {
        related = json_array();
        json_object_set_new(diagnostic, "relatedInformation", related);
    }
    json_array_append_new(related, json_pack("{s:o,s:o}", "location", note_location(a, m->loc),
                                             "message", text_json(m->text, strlen(m->text))));
}

/* The number of the last error, or the count. */
static uint32_t last_error(const Diag *diag)
{
    uint32_t i = diag->count;
    while (i && diag->messages[i - 1].severity != SEVERITY_ERROR)
        i--;
    return i ? i - 1 : diag->count;
}

/* The severity in the protocol: the text is not to blame for a compile that was cut. */
static int severity_of(const Analysis *a, uint32_t message)
{
    enum { ERROR = 1, WARNING, INFORMATION };
    if (a->cut && message == last_error(a->diag))
        return INFORMATION;
    return a->diag->messages[message].severity == SEVERITY_ERROR ? ERROR : WARNING;
}

json_t *analysis_diagnostics(const Analysis *a)
{
    json_t *all = json_array(), *last = NULL;
    for (uint32_t i = 0; i < a->diag->count; i++) {
        const Message *m = &a->diag->messages[i];
        if (m->severity == SEVERITY_NOTE) {
            if (last)
                add_note(a, last, m);
            continue;
        }
        last = json_pack("{s:o,s:i,s:s,s:o}", "range", message_range(a, m->loc), "severity",
                         severity_of(a, i), "source", "tilus", "message",
                         message_text(a, m));
        json_array_append_new(all, last);
    }
    return all;
}
