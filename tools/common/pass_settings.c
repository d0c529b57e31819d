/* The options of a pass pipeline: their check, and the files that they name. */
#include "common/pass_settings.h"

#include "common/file.h"

#include <regex.h>

const char *const pass_changed_forms[] = {"none", "module", "diff", NULL};
const char *const pass_table_forms[] = {"none", "text", "json", NULL};
const char *const pass_remark_forms[] = {"yaml", "json", NULL};

/* ---- checks ---------------------------------------------------------------------- */

bool pass_settings_check(const char *tool, const char *option, const char *pipeline)
{
    char why[512];
    if (!pipeline || tilus_check_passes(pipeline, why, sizeof why))
        return true;
    fprintf(stderr, "%s: error: --%s: %s\n", tool, option, why);
    return false;
}

/* Returns true when the expression is found in the name of a pass, or is none. */
static bool names_pass(const char *expression)
{
    regex_t regex;
    bool found = false;
    if (regcomp(&regex, expression, REG_EXTENDED | REG_NOSUB))
        return true;    /* tilus_run_passes says what is wrong */
    for (size_t i = 0; tilus_pass_name(i) && !found; i++)
        found = regexec(&regex, tilus_pass_name(i), 0, NULL, 0) == 0;
    regfree(&regex);
    return found;
}

static void warn_of_remarks(const char *tool, const char *option, const char *expression)
{
    if (expression && !names_pass(expression))
        fprintf(stderr, "%s: warning: -%s=%s is found in the name of no pass, see --list-passes "
                "of tilus-opt\n", tool, option, expression);
}

bool pass_settings_finish(PassSettings *s, const char *tool)
{
    tilus_pass_options *o = &s->options;
    o->opt_bisect = s->bisect_limit != INT_MIN;
    o->opt_bisect_limit = s->bisect_limit;
    o->print_changed = (tilus_changed)s->print_changed;
    o->stats = (tilus_table)s->stats;
    o->time_passes = (tilus_table)s->time_passes;
    o->remarks_format = (tilus_remark_format)s->remarks_format;
    warn_of_remarks(tool, "Rpass", o->remarks_passed);
    warn_of_remarks(tool, "Rpass-missed", o->remarks_missed);
    return pass_settings_check(tool, "skip", o->skip) &&
           pass_settings_check(tool, "print-before", o->print_before) &&
           pass_settings_check(tool, "print-after", o->print_after);
}

/* ---- files ------------------------------------------------------------------------ */

bool pass_settings_open(PassSettings *s, const char *tool)
{
    if (!s->remarks)
        return true;
    s->remarks_file = file_open(tool, s->remarks);
    s->options.remarks = file_take;
    s->options.remarks_data = s->remarks_file;
    return s->remarks_file != NULL;
}

bool pass_settings_close(PassSettings *s, const char *tool)
{
    return file_close(tool, s->remarks, s->remarks_file);
}
