/* tilus-explain: one page on what the compiler made of a program. */
#include "tool.h"

#include "common/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The output's bytes; NULL when memory runs out. */
static char *render(const Settings *s, const json_t *doc, size_t *size)
{
    if (s->form == FORM_HTML)
        return page_make(doc, size);
    char *text = json_dumps(doc, JSON_INDENT(1) | JSON_SORT_KEYS);
    *size = text ? strlen(text) : 0;
    return text;
}

static bool explain(const Settings *s)
{
    size_t size;
    if (!file_check_output(TOOL, s->line.input, s->output))
        return false;
    json_t *doc = explain_make(s);
    if (!doc)
        return false;
    char *text = render(s, doc, &size);
    if (!text)
        fputs(TOOL ": error: out of memory\n", stderr);
    bool ok = text && file_write(TOOL, s->output, text, size);
    free(text);
    json_decref(doc);
    return ok;
}

int main(int argc, char **argv)
{
    Settings s;
    int status;
    if (!settings_parse(&s, argc, argv, &status))
        return status;
    status = explain(&s) ? EXIT_OK : EXIT_DIAGNOSTICS;
    settings_free(&s);
    return status;
}
