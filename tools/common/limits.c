/* Limits: reading `--limit NAME=N`, and the table. */
#include "common/limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The limit called text[0..len); false if there is none. */
static bool find_limit(const char *text, size_t len, tilus_limit *limit)
{
    for (size_t i = 0; tilus_limit_at(i, limit); i++)
        if (len && strlen(limit->name) == len && !memcmp(limit->name, text, len))
            return true;
    return false;
}

static void complain_of_name(const char *tool, const char *text)
{
    tilus_limit limit = {.struct_size = sizeof limit};
    fprintf(stderr, "%s: error: option '--limit' takes NAME=N, got '%s'; names are", tool, text);
    for (size_t i = 0; tilus_limit_at(i, &limit); i++)
        if (limit.most)
            fprintf(stderr, " %s", limit.name);
    fputc('\n', stderr);
}

static bool set_one(const char *tool, const char *text, tilus_diag *diag)
{
    const char *equals = strchr(text, '=');
    tilus_limit limit = {.struct_size = sizeof limit};
    if (!equals || !find_limit(text, (size_t)(equals - text), &limit)) {
        complain_of_name(tool, text);
        return false;
    }
    char *end;
    errno = 0;
    long long value = strtoll(equals + 1, &end, 10);
    if (!errno && end != equals + 1 && !*end && tilus_set_limit(diag, limit.name, value))
        return true;
    fprintf(stderr, "%s: error: limit %s is %d .. %lld, got '%s'\n", tool, limit.name,
            tilus_set_limit(NULL, limit.name, 0) ? 0 : 1, limit.most, equals + 1);
    return false;
}

bool limits_set(const char *tool, const StringList *list, tilus_diag *diag)
{
    for (size_t i = 0; i < list->count; i++)
        if (!set_one(tool, list->items[i], diag))
            return false;
    return true;
}

void import_paths_set(const StringList *paths, tilus_diag *diag)
{
    for (size_t i = 0; i < paths->count; i++)
        tilus_add_import_path(diag, paths->items[i]);
}

void limits_print(void)
{
    tilus_limit limit = {.struct_size = sizeof limit};
    printf("| limit | value | `--limit` | up to |\n|---|---|---|---|\n");
    for (size_t i = 0; tilus_limit_at(i, &limit); i++) {
        printf("| %s | %lld |", limit.what, limit.value);
        if (limit.most)
            printf(" `%s` | %lld |\n", limit.name, limit.most);
        else
            printf(" | |\n");
    }
}
