/* Public API: diagnostics. */
#include "support/diag.h"
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

bool tilus_limit_at(size_t i, tilus_limit *limit)
{
    if (i >= LIMIT_ID_COUNT)
        return false;
    const LimitInfo *info = &limit_info[i];
    *limit = (tilus_limit){info->name, info->what, info->value, info->most};
    return true;
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
    *warning = (tilus_warning){info->name, info->what, info->on};
    return true;
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

void tilus_diag_print(const tilus_diag *diag, FILE *out) { diag_print(diag, out); }
