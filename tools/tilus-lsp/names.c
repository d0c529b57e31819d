/* The tokens of a text, and what is asked of its names. */
#include "lsp.h"

#include <stdlib.h>
#include <string.h>

static void read_tokens(Names *n, const char *text, size_t len)
{
    Lexer lx;
    lexer_init(&lx, &(SourceText){NULL, text, len, 1}, 0);
    for (;;) {
        NamedToken t = {.t = lexer_next(&lx), .name = NO_NAME};
        if (t.t.kind == TOKEN_END)
            return;
        bool marked = t.t.loc.length > t.t.len;     /* by % or a quote before it */
        t.offset = (size_t)(t.t.start - text) - marked;
        LSP_PUSH(n->tokens, n->token_count, n->token_capacity, t);
    }
}

void names_read(Names *n, const char *text, size_t len)
{
    *n = (Names){0};
    read_tokens(n, text, len);
    names_bind(n, len);
}

void names_free(Names *n)
{
    free(n->tokens);
    free(n->names);
    free(n->items);
    *n = (Names){0};
}

const NamedToken *names_token_at(const Names *n, size_t offset)
{
    size_t least = 0, most = n->token_count;
    while (least < most) {          /* the first token that ends at the byte or later */
        size_t middle = least + (most - least) / 2;
        if (named_token_end(&n->tokens[middle]) < offset)
            least = middle + 1;
        else
            most = middle;
    }
    const NamedToken *t = least < n->token_count ? &n->tokens[least] : NULL;
    if (!t || t->offset > offset)
        return NULL;
    /* Prefers the name where it touches punctuation. */
    bool next = least + 1 < n->token_count && t[1].offset == offset && named_token_end(t) == offset;
    return next && (t->t.kind == TOKEN_PUNCT || t[1].t.kind != TOKEN_PUNCT) ? t + 1 : t;
}

const Name *names_find_global(const Names *n, const char *text, size_t len, unsigned class)
{
    for (size_t i = 0; i < n->item_count; i++) {
        const NamedToken *t = &n->tokens[n->items[i].name_token];
        if (name_class(n->items[i].kind) == class && t->t.len == len &&
            !memcmp(t->t.start, text, len))
            return &n->names[t->name];
    }
    return NULL;
}

const Item *names_item_at(const Names *n, size_t offset)
{
    for (size_t i = 0; i < n->item_count; i++) {
        const Item *item = &n->items[i];
        if (name_class(item->kind) == 1 && item->end > item->first &&
            n->tokens[item->first].offset <= offset &&
            offset <= named_token_end(&n->tokens[item->end - 1]))
            return item;
    }
    return NULL;
}
