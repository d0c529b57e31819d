/* Hover: the meaning of what is under the cursor, and how its line is compiled. */
#include "lsp.h"

#include "ir/ir.h"

#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {"parameter", "layout", "function", "program", "value"};

static void add_code(Buffer *b, const char *text, size_t len)
{
    buffer_add(b, "```tilus\n");
    buffer_add_n(b, text, len);
    buffer_add(b, "\n```\n");
}

/* The line on which a text defines a name. */
static void add_line(Buffer *b, const char *text, const Names *names, const Name *n)
{
    size_t begin = names->tokens[n->definition].offset, end = begin;
    while (begin && text[begin - 1] != '\n')
        begin--;
    end += strcspn(text + end, "\r\n");
    while (begin < end && text[begin] == ' ')
        begin++;
    add_code(b, text + begin, end - begin);
}

static void add_definition(Buffer *b, const Document *d, const Name *n)
{
    buffer_printf(b, "%s\n\n", kind_names[n->kind]);
    add_line(b, d->text, &d->names, n);
}

/* The definition in another file, or after the use, if there is one. */
static void add_elsewhere(Buffer *b, const Request *r)
{
    Files f;
    Global g;
    files_read(&f, r->server);
    if (files_resolve(&f, r, &g)) {
        const File *file = &f.items[g.file];
        const Name *n = files_name(&f, &g);
        const char *slash = strrchr(file->path, '/');
        bool own = file->document == r->document;
        buffer_printf(b, "%s%s%s\n\n", kind_names[n->kind], own ? "" : " of ",
                      own ? "" : slash ? slash + 1 : file->path);
        add_line(b, file->document ? file->document->text : file->text, file_names(file), n);
    }
    files_free(&f);
}

static void add_layout(Buffer *b, Analysis *a, const ValueNote *v)
{
    buffer_printf(b, "\n%s `%s`\n", v->open ? "inferred layout" : "layout", v->layout);
    if (!v->drawn)
        return;
    buffer_add(b, "\n```\n");
    analysis_draw(a, v->drawn, b);
    buffer_add(b, "```\n");
}

static void add_facts(Buffer *b, const Value *v)
{
    const Facts *f = &v->facts;
    if (!v->program)
        return;
    if (f->has_divisible)
        buffer_printf(b, "\ndivisible by %lld\n", (long long)f->divisible);
    if (f->has_range)
        buffer_printf(b, "\nfrom %lld to %lld\n", (long long)f->min, (long long)f->max);
    if (v->type->kind == TYPE_PTR)
        buffer_printf(b, "\naligned to %lld bytes\n", (long long)f->align);
}

/* The types of a value, each once: a function's values have one for each call. */
static void add_types(Buffer *b, Analysis *a, const Name *n, const ValueNote *v, size_t count)
{
    enum { SHOWN = 4 };
    size_t shown = 0;
    for (size_t i = 0; i < count && shown < SHOWN; i++) {
        bool known = false;
        for (size_t k = 0; k < i; k++)
            known |= !strcmp(v[k].type, v[i].type);
        if (known)
            continue;
        Buffer line = {0};
        buffer_printf(&line, "%%%.*s: %s", (int)n->len, n->text, v[i].type);
        add_code(b, line.data, line.len);
        free(line.data);
        if (v[i].layout && !shown)
            add_layout(b, a, &v[i]);
        shown++;
    }
}

/* The binding that a use sees: its own, or the last one of the name before it. */
static const ValueNote *value_notes(const Request *r, const Name *n, size_t *count)
{
    const Names *names = &r->document->names;
    const Analysis *a = r->document->analysis;
    const ValueNote *found = r->token->defines ? analysis_values(a, r->token->offset, count) : NULL;
    for (size_t i = (size_t)(r->token - names->tokens); !found && i-- > n->definition;)
        if (names->tokens[i].defines && names->tokens[i].name == r->token->name)
            found = analysis_values(a, names->tokens[i].offset, count);
    return found ? found : analysis_values(a, names->tokens[n->definition].offset, count);
}

static void add_value(Buffer *b, const Request *r, Analysis *a, const Name *n)
{
    size_t count;
    const ValueNote *v = value_notes(r, n, &count);
    if (!v) {
        add_definition(b, r->document, n);
        return;
    }
    add_types(b, a, n, v, count);
    add_facts(b, v->value);
}

/* Draws a layout of the file by its name. */
static void add_named_layout(Buffer *b, const Request *r, const Name *n)
{
    enum { LONGEST = 16384 };
    char *name = lsp_strndup(n->text, n->len);
    char *drawing = analysis_draw_name(r->server, r->document, name);
    if (drawing && strlen(drawing) <= LONGEST)
        buffer_printf(b, "\n```\n%s```\n", drawing);
    free(drawing);
    free(name);
}

static void add_name(Buffer *b, const Request *r, Analysis *a, const Name *n)
{
    if (n->kind == NAME_VALUE) {
        add_value(b, r, a, n);
        return;
    }
    add_definition(b, r->document, n);
    if (n->kind == NAME_LAYOUT)
        add_named_layout(b, r, n);
}

/* The reference of an op, a type or an attribute. */
static void add_word(Buffer *b, const Token *t)
{
    OpCode op = t->kind == TOKEN_NAME ? op_find(t->start, t->len) : OP_COUNT;
    DType type = t->kind == TOKEN_NAME ? dtype_find(t->start, t->len) : DTYPE_none;
    if (op != OP_COUNT)
        buffer_printf(b, "**%s**: %s\n", op_info[op].name, op_info[op].summary);
    else if (type != DTYPE_none)
        buffer_printf(b, "**%s**: %u bits, from %.10g to %.10g\n", dtype_name(type),
                      dtype_bits(type), tilus_type_min(dtype_name(type)),
                      tilus_type_max(dtype_name(type)));
}

/* The choices of the compiler for a line. */
static void add_remarks(Buffer *b, const Analysis *a, size_t line)
{
    enum { SHOWN = 12 };
    unsigned shown = 0;
    for (size_t i = 0; i < a->remark_count && shown < SHOWN; i++) {
        const RemarkNote *n = &a->remarks[i];
        if (n->line != line + 1)
            continue;
        buffer_printf(b, "%s- %s%s\n", shown ? "" : "\n", n->missed ? "missed: " : "", n->text);
        if (n->cure)
            buffer_printf(b, "  *%s*\n", n->cure);
        shown++;
    }
}

json_t *request_hover(Request *r)
{
    Buffer b = {0};
    Analysis *a = analysis_of(r->server, r->document);
    const Name *n = request_name(r);
    if (!r->token)
        return json_null();
    if (n)
        add_name(&b, r, a, n);
    else
        add_word(&b, &r->token->t);
    if (!n && !b.len && r->token->unbound)
        add_elsewhere(&b, r);
    if (b.len)
        add_remarks(&b, a, document_line_of(r->document, r->token->offset));
    if (!b.len)
        return json_null();
    return json_pack("{s:{s:s,s:o},s:o}", "contents", "kind", "markdown", "value", buffer_json(&b),
                     "range", document_token_range(r->document, r->token));
}
