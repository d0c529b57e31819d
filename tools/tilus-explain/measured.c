/* Runs that tilus-run --measured has written, checked and taken over: docs/explain.md. */
#include "tool.h"

#include <stdio.h>
#include <string.h>

static bool fail(const char *path, const char *why)
{
    fprintf(stderr, TOOL ": error: --measured=%s: %s\n", path, why);
    return false;
}

/* ---- the form --------------------------------------------------------------------- */

static bool is_summary(const json_t *s)
{
    return json_is_number(json_object_get(s, "median_us")) &&
           json_is_number(json_object_get(s, "low_us")) &&
           json_is_number(json_object_get(s, "high_us"));
}

static bool is_times(const json_t *t)
{
    return json_is_null(t) ||
           (json_is_integer(json_object_get(t, "launches")) &&
            json_is_integer(json_object_get(t, "copies")) &&
            json_is_integer(json_object_get(t, "bytes")) &&
            is_summary(json_object_get(t, "graph")) && is_summary(json_object_get(t, "events")));
}

static bool is_line(const json_t *line)
{
    static const char *const members[] = {"line", "ops", "global_read", "global_written",
                                          "shared_read", "shared_written"};
    for (size_t i = 0; i < COUNT(members); i++)
        if (!json_is_integer(json_object_get(line, members[i])))
            return false;
    return true;
}

static bool is_lines(const json_t *lines)
{
    size_t i;
    const json_t *line;
    json_array_foreach((json_t *)lines, i, line)
        if (!is_line(line))
            return false;
    return json_is_null(lines) || json_is_array(lines);
}

static bool is_arguments(const json_t *arguments)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)arguments, name, value)
        if (!json_is_integer(value))
            return false;
    return json_is_object(arguments);
}

static bool has_form(const json_t *m)
{
    const json_t *device = json_object_get(m, "device");
    return json_is_string(json_object_get(m, "engine")) &&
           (json_is_string(device) || json_is_null(device)) &&
           is_arguments(json_object_get(m, "arguments")) &&
           is_lines(json_object_get(m, "lines")) && is_times(json_object_get(m, "times"));
}

/* ---- taking over --------------------------------------------------------------------- */

static json_t *find_program(const Explain *e, const char *name)
{
    size_t i;
    json_t *program;
    json_array_foreach(json_object_get(e->doc, "programs"), i, program)
        if (!strcmp(doc_string(program, "name"), name))
            return program;
    return NULL;
}

static void take_over(Explain *e, json_t *program, const json_t *m)
{
    static const char *const members[] = {"engine", "device", "arguments", "lines", "times"};
    json_t *list = json_object_get(program, "measured"), *copy = json_object();
    if (!list)
        list = doc_put(e, program, "measured", json_array());
    for (size_t i = 0; i < COUNT(members); i++)
        doc_put(e, copy, members[i], json_incref(json_object_get(m, members[i])));
    doc_add(e, list, copy);
}

static bool take_file(Explain *e, const char *path, const json_t *m)
{
    char why[320];
    if (strcmp(doc_string(m, "format"), "tilus-measured") != 0 || doc_integer(m, "version") != 1)
        return fail(path, "not what tilus-run --measured writes, version 1");
    if (!has_form(m))
        return fail(path, "a member is missing, or of another type");
    json_t *program = find_program(e, doc_string(m, "program"));
    if (program) {
        take_over(e, program, m);
        return true;
    }
    snprintf(why, sizeof why, "of @%.200s, a program that the file does not have",
             doc_string(m, "program"));
    return fail(path, why);
}

bool explain_measured(Explain *e)
{
    const StringList *files = &e->settings->measured;
    for (size_t i = 0; i < files->count; i++) {
        json_error_t error;
        json_t *m = json_load_file(files->items[i], 0, &error);
        bool ok = m ? take_file(e, files->items[i], m) : fail(files->items[i], error.text);
        json_decref(m);
        if (!ok)
            return false;
    }
    return true;
}
