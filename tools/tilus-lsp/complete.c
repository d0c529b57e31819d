/* Completion, from the compiler's tables and the names that are visible. */
#include "lsp.h"

#include "ir/ir.h"
#include "passes/pass.h"
#include "types/dtype.h"

#include <stdlib.h>
#include <string.h>

/* Kinds of the protocol. */
enum { KIND_FUNCTION = 3, KIND_VARIABLE = 6, KIND_PROPERTY = 10, KIND_VALUE = 12, KIND_KEYWORD = 14,
       KIND_CONSTANT = 21, KIND_STRUCT = 22, KIND_TYPE = 25 };

static void add(json_t *all, const char *label, size_t len, int kind, const char *detail)
{
    json_t *item = json_pack("{s:o,s:i}", "label", text_json(label, len), "kind", kind);
    if (detail)
        json_object_set_new(item, "detail", json_string(detail));
    json_array_append_new(all, item);
}

static void add_words(json_t *all, const char *const *words, int kind)
{
    for (; *words; words++)
        add(all, *words, strlen(*words), kind, NULL);
}

static void add_ops(json_t *all)
{
    static const char *const words[] = {"when", "else", "return", NULL};
    for (OpCode op = 0; op < OP_COUNT; op++)
        add(all, op_info[op].name, strlen(op_info[op].name),
            op_info[op].effect == EFFECT_CONTROL ? KIND_KEYWORD : KIND_FUNCTION,
            op_info[op].summary);
    add_words(all, words, KIND_KEYWORD);
}

static void add_types(json_t *all)
{
    static const char *const words[] = {"ptr", "mbarrier", "type", NULL};
    for (DType t = DTYPE_none + 1; t < DTYPE_COUNT; t++)
        add(all, dtype_name(t), strlen(dtype_name(t)), KIND_TYPE, NULL);
    add_words(all, words, KIND_KEYWORD);
}

/* Layouts and their words; scalar functions. */
static void add_layout_words(json_t *all)
{
    static const char *const words[] = {"spatial", "local", "column_spatial", "column_local",
                                        "replicate", "register_layout", NULL};
    add_words(all, words, KIND_FUNCTION);
}

static const int shown_as[] = {[NAME_PARAM] = KIND_CONSTANT, [NAME_LAYOUT] = KIND_STRUCT,
                               [NAME_FUNCTION] = KIND_FUNCTION, [NAME_PROGRAM] = KIND_FUNCTION,
                               [NAME_VALUE] = KIND_VARIABLE};

/* Names of the kinds in the bit mask that imported files define. */
static void add_imported(json_t *all, const Request *r, unsigned kinds)
{
    Files f;
    files_read(&f, r->server);
    size_t own = files_find(&f, r->document);
    bool *marked = files_of_program(&f, own);
    for (size_t i = 0; i < f.count; i++) {
        const Names *n = file_names(&f.items[i]);
        for (size_t k = 0; marked[i] && i != own && k < n->item_count; k++) {
            const Item *item = &n->items[k];
            const Token *name = &n->tokens[item->name_token].t;
            if (kinds >> item->kind & 1)
                add(all, name->start, name->len, shown_as[item->kind], NULL);
        }
    }
    free(marked);
    files_free(&f);
}

/* Names of the kinds in the bit mask that are visible at the cursor, each once. */
static void add_names(json_t *all, const Request *r, unsigned kinds)
{
    const Names *n = &r->document->names;
    for (size_t i = 0; i < n->count; i++) {
        const Name *x = &n->names[i];
        /* The name under the cursor is not one to offer when this is all there is of it. */
        bool own = r->token && &n->tokens[x->definition] == r->token;
        if ((kinds >> x->kind & 1) && x->from < r->offset && r->offset <= x->to && !own)
            add(all, x->text, x->len, shown_as[x->kind], NULL);
    }
    if (kinds & ~(1u << NAME_VALUE))
        add_imported(all, r, kinds);
}

#define KINDS_OF_WORDS (1u << NAME_PARAM | 1u << NAME_LAYOUT)

/* The op of the line before byte `at`, or OP_COUNT. */
static OpCode op_of_line(const Document *d, size_t at)
{
    size_t line = document_line_of(d, at);
    OpCode found = OP_COUNT;
    for (size_t i = 0; i < d->names.token_count && d->names.tokens[i].offset < at; i++) {
        const Token *t = &d->names.tokens[i].t;
        if (t->loc.line != line + 1 || t->kind != TOKEN_NAME || found != OP_COUNT)
            continue;
        found = op_find(t->start, t->len);
    }
    return found;
}

/* Attributes of the line's op, or facts of an argument. */
static void add_attributes(json_t *all, const Document *d, size_t at)
{
    static const char *const facts[] = {"divisible", "range", "align", NULL};
    OpCode op = op_of_line(d, at);
    if (op == OP_COUNT)
        add_words(all, facts, KIND_PROPERTY);
    for (AttrKind a = 0; op != OP_COUNT && a < ATTR_COUNT; a++)
        if (attr_in_dictionary(a) && (op_info[op].attrs & op_attr_bit(a)))
            add(all, attr_info[a].spelling, strlen(attr_info[a].spelling), KIND_PROPERTY, NULL);
}

/* Words that an attribute takes. */
static void add_attribute_words(json_t *all, const char *key, size_t len)
{
    for (AttrKind a = 0; a < ATTR_COUNT; a++) {
        const AttrInfo *info = &attr_info[a];
        if (info->value != ATTR_VALUE_WORD || strlen(info->spelling) != len ||
            memcmp(info->spelling, key, len))
            continue;
        for (unsigned w = 0; w < info->word_count; w++)
            if (*info->words[w])
                add(all, info->words[w], strlen(info->words[w]), KIND_VALUE, NULL);
    }
}

static void add_passes(json_t *all)
{
    const PassInfo *p;
    for (size_t i = 0; (p = pass_listed(i)); i++)
        add(all, p->name, strlen(p->name), KIND_FUNCTION, p->summary);
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool contains(const char *text, size_t len, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= len; i++)
        if (!memcmp(text + i, word, n))
            return true;
    return false;
}

/* Returns true where a brace of the line is open before the cursor. */
static bool in_dictionary(const char *line, size_t len)
{
    unsigned depth = 0;
    for (size_t i = 0; i < len; i++) {
        depth += line[i] == '{';
        depth -= depth && line[i] == '}';
    }
    return depth > 0;
}

/* Offers the words of the attribute before the `=` that ends the line's text. */
static void offer_attribute_value(json_t *all, const Request *r, const char *line, size_t end)
{
    size_t stop = end - 1;
    while (stop && line[stop - 1] == ' ')
        stop--;
    size_t start = stop;
    while (start && is_name_byte(line[start - 1]))
        start--;
    add_attribute_words(all, line + start, stop - start);
    add_names(all, r, 1u << NAME_PARAM);
}

/* Offers what may stand in an expression, at the beginning of a statement, or between items. */
static void offer_words(json_t *all, const Request *r, char last)
{
    static const char *const items[] = {"param", "layout", "when", "program", "function", "import",
                                        NULL};
    bool begins = last == '\n';
    if (begins && !names_item_at(&r->document->names, r->offset)) {
        add_words(all, items, KIND_KEYWORD);
        return;
    }
    if (begins || last == '=' || last == '{')
        add_ops(all);
    add_names(all, r, KINDS_OF_WORDS);
    add_types(all);
    add_layout_words(all);
}

/* Offers what may stand after the text of a line before the cursor's word. */
static void offer(json_t *all, const Request *r, const char *line, size_t len)
{
    size_t end = len;
    while (end && line[end - 1] == ' ')
        end--;
    char last = end ? line[end - 1] : '\n';
    if (end == len && last == '%') {
        add_names(all, r, 1u << NAME_VALUE);
    } else if (last == '@') {
        add_names(all, r, (end == len ? 1u << NAME_FUNCTION : 0) | 1u << NAME_LAYOUT);
        add_layout_words(all);
    } else if (last == ':' || last == '<') {
        add_types(all);
        add_names(all, r, KINDS_OF_WORDS);
    } else if (in_dictionary(line, end) && (last == '{' || last == ',')) {
        add_attributes(all, r->document, r->offset);
    } else if (in_dictionary(line, end) && last == '=') {
        offer_attribute_value(all, r, line, end);
    } else {
        offer_words(all, r, last);
    }
}

json_t *request_completion(Request *r)
{
    const Document *d = r->document;
    json_t *all = json_array();
    const char *line = d->text + d->lines[document_line_of(d, r->offset)];
    size_t len = (size_t)(d->text + r->offset - line);
    bool comment = contains(line, len, "//");
    if (comment && (contains(line, len, "passes=") || contains(line, len, "pass-pipeline=")))
        add_passes(all);
    while (len && is_name_byte(line[len - 1]))
        len--;
    if (!comment)
        offer(all, r, line, len);
    return all;
}
