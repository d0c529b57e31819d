/* Edits of program text, word by word and line by line. */
#include "edits.h"

#include "ir/ir.h"

#include <ctype.h>
#include <string.h>

/* A part of the text. */
typedef struct Span {
    size_t at, len;
} Span;

typedef struct Edit {
    const char *text;
    Span *words;            /* never blank; a name, a number or one other character */
    uint32_t word_count, word_capacity;
    Span *lines;            /* with their newline */
    uint32_t line_count, line_capacity;
    Choices *choices;
    Arena *arena;
} Edit;

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '%' || c == '@';
}

static void find_words(Edit *e)
{
    for (size_t i = 0; e->text[i];) {
        size_t len = 1;
        if (is_name(e->text[i]))
            while (is_name(e->text[i + len]))
                len++;
        if (!isspace((unsigned char)e->text[i]))
            arena_push(e->arena, e->words, e->word_count, e->word_capacity, ((Span){i, len}));
        i += len;
    }
}

static void find_lines(Edit *e)
{
    for (size_t i = 0; e->text[i];) {
        size_t len = strcspn(e->text + i, "\n");
        len += e->text[i + len] == '\n';
        arena_push(e->arena, e->lines, e->line_count, e->line_capacity, ((Span){i, len}));
        i += len;
    }
}

/* The text with `s` replaced by `len` bytes. */
static const char *replace(const Edit *e, Span s, const char *by, size_t len)
{
    return arena_printf(e->arena, "%.*s%.*s%s", (int)s.at, e->text, (int)len, by,
                        e->text + s.at + s.len);
}

static Span pick(const Edit *e, const Span *spans, uint32_t count)
{
    return spans[choose(e->choices, count)];
}

/* ---- what comes instead ------------------------------------------------------ */

static const char *other_number(Edit *e)
{
    static const char *const numbers[] = {
        "0", "1", "2", "3", "4", "5", "7", "8", "16", "24", "31", "32", "33", "64", "128",
        "-1", "1000", "1024", "65536", "2147483647", "2147483648", "4294967296",
        "9223372036854775807"};
    enum { SMALL = 16, ALL = sizeof numbers / sizeof *numbers };
    return numbers[choose(e->choices, choose(e->choices, 4) ? SMALL : ALL)];
}

static const char *other_name(Edit *e)
{
    static const char *const words[] = {
        "tilus", "program", "param", "layout", "when", "else", "in", "step", "iter", "warps",
        "global", "shared", "strides", "swizzle", "auto", "divisible", "range", "align",
        "local", "spatial", "column_local", "column_spatial", "replicate", "reduce",
        "permute", "ptr", "mod", "min", "max", "true", "false", "nan", "inf", "vector",
        "matrix", "unit"};
    enum { WORDS = sizeof words / sizeof *words };
    switch (choose(e->choices, 4)) {
    case 0: return op_info[choose(e->choices, OP_COUNT)].name;
    case 1: return dtype_name((DType)choose_between(e->choices, 1, DTYPE_COUNT - 1));
    case 2: return attr_info[choose(e->choices, ATTR_COUNT)].spelling;
    default: return words[choose(e->choices, WORDS)];
    }
}

/* One of the same kind as the word, often one of this text. */
static const char *replace_word(Edit *e)
{
    Span s = pick(e, e->words, e->word_count), other;
    char first = e->text[s.at];
    for (unsigned i = 0; i < 8 && choose(e->choices, 2); i++) {
        other = pick(e, e->words, e->word_count);
        char c = e->text[other.at];
        if (isdigit((unsigned char)c) == isdigit((unsigned char)first) &&
            (c == '%') == (first == '%') && is_name(c) == is_name(first))
            return replace(e, s, e->text + other.at, other.len);
    }
    const char *by = isdigit((unsigned char)first) ? other_number(e) : other_name(e);
    return replace(e, s, by, strlen(by));
}

/* Another number in the place of each that equals one: extents agree still. */
static const char *replace_all_alike(Edit *e)
{
    Span s = pick(e, e->words, e->word_count);
    const char *by = other_number(e), *from = e->text + s.at, *text = e->text;
    if (!isdigit((unsigned char)*from))
        return text;
    for (uint32_t i = e->word_count; i-- > 0;) {
        Span w = e->words[i];
        if (w.len == s.len && memcmp(e->text + w.at, from, s.len) == 0)
            text = arena_printf(e->arena, "%.*s%s%s", (int)w.at, text, by,
                                text + w.at + w.len);
    }
    return text;
}

static const char *edit_once(Edit *e)
{
    Span word = pick(e, e->words, e->word_count), line = pick(e, e->lines, e->line_count);
    Span other = pick(e, e->lines, e->line_count);
    switch (choose(e->choices, 8)) {
    case 0: return replace(e, word, "", 0);
    case 1: return replace(e, (Span){word.at, 0}, e->text + word.at, word.len);
    case 2: return replace(e, line, "", 0);
    case 3: return replace(e, (Span){other.at, 0}, e->text + line.at, line.len);
    case 4: return replace_all_alike(e);
    default: return replace_word(e);
    }
}

const char *text_edit(const char *text, unsigned count, Choices *choices, Arena *arena)
{
    for (unsigned i = 0; i < count; i++) {
        Edit e = {.text = text, .choices = choices, .arena = arena};
        find_words(&e);
        find_lines(&e);
        if (e.word_count == 0)
            return text;
        text = edit_once(&e);
    }
    return text;
}
