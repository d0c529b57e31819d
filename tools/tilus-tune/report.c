/* Prints the database for people, exports it for the library, and imports tunings. */
#define _GNU_SOURCE
#include "database.h"

#include "common/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- show ------------------------------------------------------------- */

static void print_counts(const size_t counts[OUTCOMES])
{
    for (Outcome o = OUTCOME_OK; o < OUTCOMES; o++)
        printf("%s%zu %s", o == OUTCOME_OK ? "" : ", ", counts[o], outcome_name(o));
    putchar('\n');
}

static void print_tuning(const MatmulTuning *t)
{
    char text[128], config[MATMUL_CONFIG_MAX];
    const Task task = {.spec = t->spec, .m = t->m};
    MatmulDevice device = matmul_device(t->device, 0, 0, 0);
    printf("%s, %s: %s: %.2f us", t->device, task_print(&task, text),
           matmul_config_print(&t->config, config), t->us);
    if (device.bandwidth > 0)
        printf(", %.1f %% of the read floor",
               100 * matmul_floor(&t->spec, t->m, &device) / t->us);
    if (strcmp(t->template, matmul_template_hash()) != 0)
        printf(" (of another template)");
    putchar('\n');
}

int tune_show(const Settings *s)
{
    MatmulTunings best;
    size_t counts[OUTCOMES];
    Database *d = database_open(s->database, false);
    bool ok = d && database_best(d, &best);
    if (ok) {
        for (size_t i = 0; i < best.count; i++)
            print_tuning(&best.items[i]);
        free(best.items);
        ok = database_count(d, counts);
    }
    if (ok)
        print_counts(counts);
    database_close(d);
    return ok && file_close(TOOL, "-", stdout) ? EXIT_OK : EXIT_DIAGNOSTICS;
}

/* ---- export ----------------------------------------------------------- */

static const char *const zeros_names[] = {"NONE", "INTEGER", "FLOAT"};

/* Device names are printable and have no quotes or backslashes, or the row is left out. */
static bool is_plain(const char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~' || *text == '"' || *text == '\\')
            return false;
    return true;
}

static void print_c(FILE *f, const MatmulTuning *t)
{
    const MatmulSpec *s = &t->spec;
    if (!is_plain(t->device) || !is_plain(t->driver) || !is_plain(t->template))
        return;
    fprintf(f, "TUNING(\"%s\", \"%s\", \"%s\", \"%s\", \"%s\", %" PRId64 ", %s, %" PRId64 ", %"
            PRId64 ", %" PRId64 ",\n", t->template, dtype_name(s->weights),
            dtype_name(s->activations), dtype_name(s->scales), dtype_name(s->result),
            s->group * s->repeats, zeros_names[s->zeros], s->n, s->k, t->m);
    fprintf(f, "       \"%s\", \"%s\", %.2f", t->device, t->driver, t->us);
    for (int i = 0; i < MATMUL_FIELDS; i++)
        fprintf(f, ", %d", matmul_field_value(&t->config, i));
    fputs(")\n", f);
}

static char *make_c(const MatmulTunings *best)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    fputs("/* Tunings, written by `tilus-tune export --format=c`. */\n", f);
    for (size_t i = 0; i < best->count; i++)
        print_c(f, &best->items[i]);
    if (fclose(f) == 0)
        return text;
    free(text);
    return NULL;
}

int tune_export(const Settings *s)
{
    MatmulTunings best = {0};
    Database *d = database_open(s->database, false);
    bool ok = d && database_best(d, &best);
    database_close(d);
    if (!ok)
        return EXIT_DIAGNOSTICS;
    char *text = s->format == EXPORT_C ? make_c(&best) : matmul_tunings_write(&best);
    free(best.items);
    if (!text)
        fprintf(stderr, "%s: error: out of memory\n", TOOL);
    ok = text && file_write(TOOL, s->output, text, strlen(text));
    free(text);
    return ok ? EXIT_OK : EXIT_DIAGNOSTICS;
}

/* ---- import ----------------------------------------------------------- */

static bool read_tunings(const char *path, MatmulTunings *tunings)
{
    char message[256], *text;
    size_t size;
    if (!file_read(TOOL, path, TEXT_SIZE_MAX, &text, &size))
        return false;
    bool ok = matmul_tunings_read(text, tunings, message, sizeof message);
    if (!ok)
        fprintf(stderr, "%s: error: %s: %s\n", TOOL, path, message[0] ? message : "out of memory");
    free(text);
    return ok;
}

int tune_import(const Settings *s)
{
    MatmulTunings tunings;
    if (s->words.count != 2) {
        fprintf(stderr, "%s: error: import takes one file, got %zu\n", TOOL,
                s->words.count - 1);
        return EXIT_USAGE;
    }
    if (!read_tunings(s->words.items[1], &tunings))
        return EXIT_DIAGNOSTICS;
    Database *d = database_open(s->database, true);
    bool ok = d && database_import(d, &tunings);
    database_close(d);
    if (ok)
        printf("imported %zu tunings\n", tunings.count);
    free(tunings.items);
    return ok ? EXIT_OK : EXIT_DIAGNOSTICS;
}
