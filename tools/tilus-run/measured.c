/* --measured: the results of --profile and --bench as JSON, for tilus-explain: docs/explain.md. */
#include "measured.h"

#include "common/file.h"
#include "support/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void measured_keep_lines(Run *run, const tilus_line_profile *lines, size_t count)
{
    Measured *m = &run->measured;
    if (!run->options.measured)
        return;
    m->lines = malloc((count + 1) * sizeof *lines);
    if (m->lines)
        memcpy(m->lines, lines, count * sizeof *lines);
    m->line_count = m->lines ? count : 0;
    m->no_memory = !m->lines;
}

/* ---- writing ---------------------------------------------------------- */

/* Writes the member `name`: a string, or null for NULL. */
static void write_word(const Writer *out, const char *name, const char *text)
{
    write_json_key(out, name, false);
    if (text)
        write_json_string(out, text);
    else
        writer_add(out, "null");
}

static bool is_integer(tilus_arg_kind kind)
{
    return kind == TILUS_ARG_I32 || kind == TILUS_ARG_U32 || kind == TILUS_ARG_I64;
}

static void write_arguments(const Writer *out, const Run *run)
{
    bool first = true;
    write_json_key(out, "arguments", false);
    writer_char(out, '{');
    for (size_t i = 0; i < run->info->arg_count; i++)
        if (is_integer(run->info->args[i].kind)) {
            write_json_key(out, run->info->args[i].name, first);
            writer_printf(out, "%" PRId64, run->args[i].integer);
            first = false;
        }
    writer_char(out, '}');
}

static uint64_t bytes_of(uint64_t bits)
{
    return (bits + 7) / 8;
}

static void write_line(const Writer *out, const tilus_line_profile *p)
{
    writer_printf(out, "\n  {\"line\": %u, \"ops\": %" PRIu64 ", \"global_read\": %" PRIu64
                  ", \"global_written\": %" PRIu64 ", \"shared_read\": %" PRIu64
                  ", \"shared_written\": %" PRIu64 "}", p->line, p->ops, bytes_of(p->global_read),
                  bytes_of(p->global_written), bytes_of(p->shared_read),
                  bytes_of(p->shared_written));
}

static void write_lines(const Writer *out, const Measured *m)
{
    write_json_key(out, "lines", false);
    writer_add(out, m->lines ? "[" : "null");
    for (size_t i = 0; i < m->line_count; i++) {
        writer_add(out, i ? "," : "");
        write_line(out, &m->lines[i]);
    }
    writer_add(out, m->lines ? "]" : "");
}

static void write_times(const Writer *out, const Measured *m)
{
    static const char *const names[MEASURED_WAYS] = {"graph", "events"};
    writer_add(out, ",\n \"times\": ");
    if (!m->launches) {
        writer_add(out, "null");
        return;
    }
    writer_printf(out, "{\"launches\": %u, \"copies\": %u, \"bytes\": %zu", m->launches, m->copies,
                  m->bytes);
    for (size_t i = 0; i < MEASURED_WAYS; i++)
        writer_printf(out, ",\n  \"%s\": {\"median_us\": %.3f, \"low_us\": %.3f, "
                      "\"high_us\": %.3f}", names[i], m->times[i].median, m->times[i].low,
                      m->times[i].high);
    writer_char(out, '}');
}

static const char *engine_name(const Run *run)
{
    static const char *const names[] = {"auto", "interp", "cpu", "gpu"};
    return names[run->options.engine];
}

static void write_all(const Writer *out, const Run *run)
{
    const Measured *m = &run->measured;
    writer_add(out, "{\"format\": \"tilus-measured\", \"version\": 1,\n ");
    write_json_key(out, "program", true);
    write_json_string(out, run->program);
    write_word(out, "engine", engine_name(run));
    write_word(out, "device", run->rt ? tilus_rt_device_name(run->rt, DEVICE) : NULL);
    write_arguments(out, run);
    write_lines(out, m);
    write_times(out, m);
    writer_add(out, "}\n");
}

int measured_write(const Run *run)
{
    const char *path = run->options.measured;
    if (!path)
        return EXIT_OK;
    if (run->measured.no_memory) {
        fprintf(stderr, "%s: error: out of memory\n", TOOL);
        return EXIT_DIAGNOSTICS;
    }
    FILE *file = file_open(TOOL, path);
    if (!file)
        return EXIT_DIAGNOSTICS;
    write_all(&(Writer){file_take, file}, run);
    return file_close(TOOL, path, file) ? EXIT_OK : EXIT_DIAGNOSTICS;
}
