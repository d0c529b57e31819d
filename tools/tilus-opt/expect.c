/* --verify-diagnostics: comments that say which diagnostics a text gives. */
#define _GNU_SOURCE
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Expectation {
    tilus_severity severity;
    bool any_line;
    unsigned line;
    const char *text;
    size_t len;
} Expectation;

static const char *const severity_names[] = {"error", "warning", "note"};

/* `needle` in text[0..len), or NULL. */
static const char *find(const char *text, size_t len, const char *needle)
{
    size_t n = strlen(needle);
    for (; len >= n; text++, len--)
        if (!memcmp(text, needle, n))
            return text;
    return NULL;
}

/* Reads "SEVERITY[@+N|@-N|@*] {{text}}" at `p`; false if it is not that. */
static bool read_expectation(const char *p, const char *end, unsigned line, Expectation *e)
{
    size_t s = 0;
    while (s < 3 && ((size_t)(end - p) < strlen(severity_names[s]) ||
                     memcmp(p, severity_names[s], strlen(severity_names[s]))))
        s++;
    if (s == 3)
        return false;
    p += strlen(severity_names[s]);
    *e = (Expectation){.severity = (tilus_severity)s, .line = line};
    if (p < end && *p == '@') {
        e->any_line = p + 1 < end && p[1] == '*';
        e->line = (unsigned)((long)line + strtol(p + 1, NULL, 10));
    }
    const char *open = find(p, (size_t)(end - p), "{{");
    const char *close = open ? find(open, (size_t)(end - open), "}}") : NULL;
    if (!close)
        return false;
    e->text = open + 2;
    e->len = (size_t)(close - e->text);
    return true;
}

static bool meets(const tilus_diag *diag, size_t i, const Expectation *e)
{
    if (tilus_diag_severity(diag, i) != e->severity ||
        (!e->any_line && tilus_diag_line(diag, i) != e->line))
        return false;
    const char *message = tilus_diag_text(diag, i);
    char *wanted = strndup(e->text, e->len);
    bool found = wanted && strstr(message, wanted);
    free(wanted);
    return found;
}

/* Takes the first diagnostic that meets `e` and is not taken yet. */
static bool take(const tilus_diag *diag, bool *taken, const Expectation *e)
{
    for (size_t i = 0; i < tilus_diag_count(diag); i++)
        if (!taken[i] && meets(diag, i, e))
            return taken[i] = true;
    return false;
}

static bool check_line(const tilus_diag *diag, bool *taken, const char *file, const char *text,
                       const char *end, unsigned line)
{
    static const char mark[] = "expected-";
    bool ok = true;
    Expectation e;
    for (const char *p = text; (p = find(p, (size_t)(end - p), mark));) {
        p += sizeof mark - 1;
        if (!read_expectation(p, end, line, &e) || take(diag, taken, &e))
            continue;
        fprintf(stderr, "%s:%u: error: expected %s was not given: %.*s\n", file, e.line,
                severity_names[e.severity], (int)e.len, e.text);
        ok = false;
    }
    return ok;
}

static bool check_lines(const tilus_diag *diag, bool *taken, const char *file, const char *text,
                        size_t len, unsigned line)
{
    bool ok = true;
    for (const char *end = text + len; text < end; line++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *stop = newline ? newline : end;
        const char *comment = find(text, (size_t)(stop - text), "//");
        if (comment)
            ok &= check_line(diag, taken, file, comment, stop, line);
        text = newline ? newline + 1 : end;
    }
    return ok;
}

bool expectations_hold(const tilus_diag *diag, const char *file, const char *text, size_t len,
                       unsigned first_line)
{
    bool *taken = calloc(tilus_diag_count(diag) + 1, sizeof *taken);
    if (!taken)
        return false;
    bool ok = check_lines(diag, taken, file, text, len, first_line);
    for (size_t i = 0; i < tilus_diag_count(diag); i++) {
        if (taken[i])
            continue;
        fprintf(stderr, "%s:%u:%u: error: unexpected %s: %s\n", file, tilus_diag_line(diag, i),
                tilus_diag_column(diag, i), severity_names[tilus_diag_severity(diag, i)],
                tilus_diag_text(diag, i));
        ok = false;
    }
    free(taken);
    return ok;
}
