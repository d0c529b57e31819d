/* Public API: warnings of registers that spill, as an assembler of PTX has found. */
#include "ir/ir.h"
#include "tilus/tilus.h"

#include <stdio.h>
#include <string.h>

/* Returns the text after `mark` in text[0..), up to `end`; NULL if it is not there. */
static const char *find_after(const char *text, const char *mark, const char *end)
{
    const char *found = strstr(text, mark);
    return found && (!end || found < end) ? found + strlen(mark) : NULL;
}

/* Reads the properties of a program, the line after its name's. */
static bool report_program(tilus_module *m, const Program *p, const char *properties)
{
    unsigned stores, loads;
    const char *begin = strchr(properties, '\n');
    const char *counts = begin ? find_after(begin + 1, "bytes stack frame, ",
                                            strchr(begin + 1, '\n')) : NULL;
    if (!counts || sscanf(counts, "%u bytes spill stores, %u bytes spill loads", &stores,
                          &loads) != 2 || (!stores && !loads))
        return true;
    bool ok = diag_warning(m->diag, WARNING_SPILLS, p->loc, "registers of @%s spill: a thread "
                           "stores %u bytes to local memory and loads %u", p->name, stores, loads);
    diag_note(m->diag, p->loc, "smaller tiles or more warps need fewer registers a thread%s",
              p->min_blocks ? "; `min_blocks` limits the registers of a thread" : "");
    return ok;
}

/* Finds the program whose name text[0..) begins with, up to the line's end or a quote. */
static const Program *find_program(const tilus_module *m, const char *text)
{
    size_t len = strcspn(text += *text == '\'', "'\r\n:");
    for (const Program *p = m->programs; p; p = p->next)
        if (strlen(p->name) == len && !memcmp(p->name, text, len))
            return p;
    return NULL;
}

static bool report_programs(tilus_module *m, const char *log)
{
    bool ok = true;
    while ((log = find_after(log, "Function properties for ", NULL))) {
        const Program *p = find_program(m, log);
        ok &= !p || report_program(m, p, log);
    }
    return ok;
}

bool tilus_report_spills(tilus_module *module, const char *log)
{
    return !setjmp(module->diag->oom.jump) && report_programs(module, log);
}
