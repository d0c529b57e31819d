/* Public API: diagnostics. */
#include "support/diag.h"
#include "support/sized.h"
#include "tilus/tilus.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

tilus_diag *tilus_diag_new(void)
{
    tilus_diag *diag = malloc(sizeof *diag);
    if (diag)
        diag_init(diag);
    return diag;
}

void tilus_diag_free(tilus_diag *diag)
{
    if (diag)
        diag_free(diag);
    free(diag);
}

static const Report no_report = {NULL, 0};

bool tilus_limit_at(size_t i, tilus_limit *limit)
{
    if (i >= LIMIT_ID_COUNT)
        return false;
    const LimitInfo *info = &limit_info[i];
    const tilus_limit all = {sizeof all, info->name, info->what, info->value, info->most};
    return SIZED_FILL(tilus_limit, limit, &all, "limit", no_report);
}

bool tilus_set_limit(tilus_diag *diag, const char *name, long long value)
{
    for (LimitId id = 0; id < LIMIT_ID_COUNT; id++)
        if (limit_info[id].most && !strcmp(limit_info[id].name, name))
            return diag ? diag_set_limit(diag, id, value) : limit_allows(id, value);
    return false;
}

bool tilus_add_import_path(tilus_diag *diag, const char *directory)
{
    if (setjmp(diag->oom.jump))
        return false;
    diag_add_import_path(diag, directory);
    return true;
}

bool tilus_warning_at(size_t i, tilus_warning *warning)
{
    if (i >= WARNING_COUNT)
        return false;
    const WarningInfo *info = &warning_info[i];
    const tilus_warning all = {sizeof all, info->name, info->what, info->on};
    return SIZED_FILL(tilus_warning, warning, &all, "warning", no_report);
}

bool tilus_set_warning(tilus_diag *diag, const char *flag)
{
    WarningSet ignored = {0};
    return warning_set_apply(diag ? &diag->groups : &ignored, flag);
}

size_t tilus_diag_count(const tilus_diag *diag) { return diag->count; }
size_t tilus_diag_errors(const tilus_diag *diag) { return diag->errors; }
size_t tilus_diag_warnings(const tilus_diag *diag) { return diag->warnings; }

tilus_severity tilus_diag_severity(const tilus_diag *diag, size_t i)
{
    return (tilus_severity)diag->messages[i].severity;
}

const char *tilus_diag_file(const tilus_diag *diag, size_t i)
{
    return diag_source(diag, diag->messages[i].loc)->file;
}

unsigned tilus_diag_line(const tilus_diag *diag, size_t i) { return diag->messages[i].loc.line; }

unsigned tilus_diag_column(const tilus_diag *diag, size_t i)
{
    return diag->messages[i].loc.column;
}

const char *tilus_diag_text(const tilus_diag *diag, size_t i) { return diag->messages[i].text; }

const char *tilus_diag_group(const tilus_diag *diag, size_t i)
{
    WarningId group = diag->messages[i].group;
    return group == WARNING_COUNT ? NULL : warning_info[group].name;
}

void tilus_diag_write(const tilus_diag *diag, tilus_write *write, void *data)
{
    const Writer out = {write, data};
    diag_write(diag, &out);
}

/* A text that grows by realloc; `data` is NULL once memory ran out. */
typedef struct Growing {
    char *data;
    size_t length, capacity;
} Growing;

static void grow(void *data, const char *text, size_t length)
{
    Growing *g = data;
    if (!g->data)
        return;
    if (g->capacity - g->length <= length) {
        size_t capacity = 2 * (g->length + length + 1);
        char *larger = realloc(g->data, capacity);
        if (!larger)
            free(g->data);
        g->data = larger;
        g->capacity = capacity;
    }
    if (g->data)
        memcpy(g->data + g->length, text, length);
    g->length += length;
}

char *tilus_diag_format(const tilus_diag *diag)
{
    Growing g = {malloc(1), 0, 1};
    tilus_diag_write(diag, grow, &g);
    if (g.data)
        g.data[g.length] = '\0';
    return g.data;
}
