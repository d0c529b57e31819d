/* Reduction of any text: lines, words and numbers. */
#define _GNU_SOURCE
#include "reduce.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The best text with the bytes [at, at + len) replaced by `by`; from malloc. */
static char *spliced(const Reduction *r, size_t at, size_t len, const char *by)
{
    size_t size = strlen(r->best) - len + strlen(by) + 1;
    char *text = malloc(size);
    if (text)
        snprintf(text, size, "%.*s%s%s", (int)at, r->best, by, r->best + at + len);
    return text;
}

/* ---- lines --------------------------------------------------------------------- */

/* The bytes of `count` lines from `at` on. */
static size_t lines_length(const char *text, size_t at, unsigned count)
{
    size_t end = at;
    for (; count > 0 && text[end]; count--) {
        end += strcspn(text + end, "\n");
        end += text[end] == '\n';
    }
    return end - at;
}

static unsigned count_lines(const char *text)
{
    unsigned lines = 0;
    for (size_t at = 0; text[at]; at += lines_length(text, at, 1))
        lines++;
    return lines;
}

static bool drop_lines(Reduction *r)
{
    bool any = false;
    for (unsigned chunk = count_lines(r->best) / 2; chunk > 0; chunk /= 2)
        for (size_t at = 0; r->best[at] && !r->stopped;) {
            size_t len = lines_length(r->best, at, chunk);
            if (reduction_try(r, spliced(r, at, len, "")))
                any = true;
            else
                at += len;
        }
    return any;
}

/* ---- words ----------------------------------------------------------------------- */

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '%' || c == '@';
}

/* A name, a number, or one other character, with the blanks before it. */
static size_t word_length(const char *text)
{
    size_t blank = strspn(text, " \t"), len = 0;
    while (in_word(text[blank + len]))
        len++;
    return blank + (len ? len : text[blank] != '\0');
}

/* A word and what stands in brackets after it, on its line: "pipelined(3)", "{..}". */
static size_t phrase_length(const char *text)
{
    size_t len = strspn(text, " \t");
    int depth = 0;
    len += strchr("([{", text[len]) ? 0 : word_length(text + len);
    if (!text[len] || !strchr("([{", text[len]))
        return len;
    for (; text[len] && text[len] != '\n'; len++) {
        depth += strchr("([{", text[len]) != NULL;
        depth -= strchr(")]}", text[len]) != NULL;
        if (depth == 0)
            return len + 1;
    }
    return len;
}

static bool drop_words(Reduction *r)
{
    bool any = false;
    for (size_t at = 0; r->best[at] && !r->stopped;) {
        size_t len = word_length(r->best + at);
        size_t phrase = phrase_length(r->best + at);
        if (r->best[at] != '\n' && (reduction_try(r, spliced(r, at, phrase, "")) ||
                                    reduction_try(r, spliced(r, at, len, ""))))
            any = true;
        else
            at += len;
    }
    return any;
}

/* ---- numbers --------------------------------------------------------------------- */

static bool begins_number(const char *text, size_t at)
{
    return isdigit((unsigned char)text[at]) && (at == 0 || !in_word(text[at - 1]));
}

/* The best text with `number` in the place of the one at `at` and, as extents must
 * agree, of `all` that equal it. */
static char *renumbered(const Reduction *r, size_t at, unsigned long number, bool all)
{
    char *text = NULL, old[32];
    size_t size, len = word_length(r->best + at);
    snprintf(old, sizeof old, "%.*s", (int)len, r->best + at);
    FILE *out = open_memstream(&text, &size);
    for (size_t i = 0; out && r->best[i];) {
        size_t word = begins_number(r->best, i) ? word_length(r->best + i) : 1;
        bool alike = begins_number(r->best, i) && word == len &&
                     memcmp(r->best + i, old, len) == 0;
        if (i == at || (all && alike))
            fprintf(out, "%lu", number);
        else
            fprintf(out, "%.*s", (int)word, r->best + i);
        i += word;
    }
    if (out)
        fclose(out);
    return text;
}

/* A number becomes 0, 1, or half of it. */
static bool shrink_number(Reduction *r, size_t at, bool all)
{
    char *end;
    unsigned long number = strtoul(r->best + at, &end, 10);
    if (word_length(r->best + at) > 20 || end != r->best + at + word_length(r->best + at))
        return false;
    return (number > 0 && reduction_try(r, renumbered(r, at, 0, all))) ||
           (number > 1 && reduction_try(r, renumbered(r, at, 1, all))) ||
           (number > 3 && reduction_try(r, renumbered(r, at, number / 2, all)));
}

static bool shrink_numbers(Reduction *r, bool all)
{
    bool any = false;
    for (size_t at = 0; r->best[at] && !r->stopped;) {
        if (begins_number(r->best, at) && shrink_number(r, at, all))
            any = true;
        else
            at++;
    }
    return any;
}

bool reduce_numbers(Reduction *r)
{
    bool any = shrink_numbers(r, true);
    return shrink_numbers(r, false) || any;
}

bool reduce_text(Reduction *r)
{
    bool any = drop_lines(r);
    any |= drop_words(r);
    return reduce_numbers(r) || any;
}
