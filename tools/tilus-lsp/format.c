/* Formatting: indentation by two blanks a level, no blanks at the ends of lines, one newline at the
 * end; lines that go on with a statement move with its first line. Tokens stay on their lines and
 * comments stay: the printer would drop these, and write instantiated templates. */
#include "lsp.h"

#include "ir/op_info.h"

#include <string.h>

typedef struct Formatter {
    const Document *d;
    json_t *edits;
    size_t token;               /* the first one that is not passed yet */
    unsigned braces, brackets;  /* open before it */
    long shift;                 /* of the last line that began a statement */
} Formatter;

/* Passes the tokens before byte `end`. */
static void pass_tokens(Formatter *f, size_t end)
{
    const Names *n = &f->d->names;
    for (; f->token < n->token_count && n->tokens[f->token].offset < end; f->token++) {
        const Token *t = &n->tokens[f->token].t;
        f->braces += token_is(t, "{");
        f->braces -= f->braces && token_is(t, "}");
        f->brackets += token_is(t, "(") || token_is(t, "[");
        f->brackets -= f->brackets && (token_is(t, ")") || token_is(t, "]"));
    }
}

/* Replaces bytes by `blanks` blanks where they are not so already. */
static void set_blanks(Formatter *f, size_t begin, size_t end, size_t blanks)
{
    bool same = end - begin == blanks;
    for (size_t i = begin; same && i < end; i++)
        same = f->d->text[i] == ' ';
    if (same)
        return;
    Buffer b = {0};
    for (size_t i = 0; i < blanks; i++)
        buffer_add(&b, " ");
    json_array_append_new(f->edits, json_pack("{s:o,s:o}", "range",
                                              document_range(f->d, begin, end), "newText",
                                              buffer_json(&b)));
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* Columns of the blanks at a line's beginning, tabulators to multiples of 8. */
static size_t columns(const char *text, size_t len)
{
    size_t column = 0;
    for (size_t i = 0; i < len; i++)
        column = text[i] == '\t' ? column / 8 * 8 + 8 : column + 1;
    return column;
}

/* Returns true when the line's first token begins a statement or an item, or ends a region. */
static bool begins_statement(const Names *n, size_t i)
{
    static const char *const words[] = {"tilus", "import", "param", "layout", "when", "program",
                                        "function", "else", "return", "}", "@"};
    const Token *t = &n->tokens[i].t;
    if (t->kind == TOKEN_VALUE)
        return n->tokens[i].defines;
    bool found = t->kind == TOKEN_NAME && op_find(t->start, t->len) != OP_COUNT;
    for (size_t w = 0; w < sizeof words / sizeof *words; w++)
        found |= token_is(t, words[w]);
    return found;
}

/* The indentation of a line of which the text begins at `begin`. */
static size_t indentation(Formatter *f, size_t line, size_t begin)
{
    const Names *n = &f->d->names;
    bool at_token = f->token < n->token_count && n->tokens[f->token].offset == begin;
    bool closes = at_token && token_is(&n->tokens[f->token].t, "}") && f->braces;
    long now = (long)columns(f->d->text + f->d->lines[line], begin - f->d->lines[line]);
    if (f->brackets || (at_token && !begins_statement(n, f->token)))
        return (size_t)(now + f->shift > 0 ? now + f->shift : 0);
    long wanted = 2 * ((long)f->braces - closes);
    f->shift = wanted - now;
    return (size_t)wanted;
}

static void format_line(Formatter *f, size_t line)
{
    const Document *d = f->d;
    size_t begin = d->lines[line], end = document_line_end(d, line), stop = end;
    pass_tokens(f, begin);
    while (begin < end && is_blank(d->text[begin]))
        begin++;
    while (stop > begin && is_blank(d->text[stop - 1]))
        stop--;
    set_blanks(f, d->lines[line], begin, begin < stop ? indentation(f, line, begin) : 0);
    set_blanks(f, stop, end, 0);
}

/* Leaves one newline at the end of a text that is not empty. */
static void format_end(Formatter *f)
{
    const Document *d = f->d;
    size_t end = d->len;
    while (end && strchr(" \t\r\n", d->text[end - 1]))
        end--;
    bool right = !d->len || (end + 1 == d->len && d->text[end] == '\n');
    if (!right)
        json_array_append_new(f->edits, json_pack("{s:o,s:s}", "range",
                                                  document_range(d, end, d->len), "newText",
                                                  end ? "\n" : ""));
}

json_t *request_formatting(Request *r)
{
    const Document *d = r->document;
    Formatter f = {.d = d, .edits = json_array()};
    size_t last = d->len;
    while (last && strchr(" \t\r\n", d->text[last - 1]))
        last--;
    size_t lines = last ? document_line_of(d, last - 1) + 1 : 0;
    for (size_t line = 0; line < lines; line++)
        format_line(&f, line);
    format_end(&f);
    /* The last line's blanks and the end are one edit, where both are wrong. */
    size_t end = lines ? document_line_end(d, lines - 1) : 0;
    if (end && is_blank(d->text[end - 1]))
        json_array_remove(f.edits, json_array_size(f.edits) - 2);
    return f.edits;
}
