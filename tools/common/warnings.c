/* Groups of warnings: reading -W, and the table. */
#include "common/warnings.h"

#include <stdio.h>
#include <string.h>

/* The group's name in a flag: "pipeline" of "no-error=pipeline". */
static const char *group_name(const char *flag)
{
    const char *equals = strchr(flag, '=');
    if (equals)
        return equals + 1;
    return strncmp(flag, "no-", 3) == 0 ? flag + 3 : flag;
}

static void report_unknown(const char *tool, const char *flag)
{
    const char *name = group_name(flag);
    Nearest nearest = {.name = name, .len = strlen(name)};
    tilus_warning warning = {.struct_size = sizeof warning};
    for (size_t i = 0; tilus_warning_at(i, &warning); i++)
        nearest_try(&nearest, warning.name);
    fprintf(stderr, "%s: error: no warnings are called '%s' (-W%s)", tool, name, flag);
    if (nearest.found)
        fprintf(stderr, ", did you mean '%s'?\n", nearest.found);
    else
        fputs(", see tilus-opt --list-warnings\n", stderr);
}

bool warnings_set(const char *tool, const StringList *list, tilus_diag *diag)
{
    for (size_t i = 0; i < list->count; i++)
        if (!tilus_set_warning(diag, list->items[i])) {
            report_unknown(tool, list->items[i]);
            return false;
        }
    return true;
}

void warnings_print(void)
{
    tilus_warning warning = {.struct_size = sizeof warning};
    printf("| flag | default | warns of |\n|---|---|---|\n");
    for (size_t i = 0; tilus_warning_at(i, &warning); i++)
        printf("| `-W%s` | %s | %s |\n", warning.name, warning.on ? "on" : "off", warning.what);
}
