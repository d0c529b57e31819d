/* Prints measurements: medians, spread, and the share of the memory's rate. */
#include "bench.h"

#include <stdio.h>
#include <string.h>

/* TB/s that reading reaches, or 0 when nobody has measured it. An H200 takes
 * 2.50 us + bytes / 4.57 TB/s in a graph (driver 580.159, November 2026). */
static double peak_rate(const Bench *b)
{
    static const struct {
        const char *device;
        double rate;
    } measured[] = {{"H200", 4.57}};
    const char *name = tilus_rt_device_name(b->run->rt, DEVICE);
    if (b->run->options.peak_bandwidth > 0)
        return b->run->options.peak_bandwidth;
    for (size_t i = 0; i < COUNT(measured); i++)
        if (strstr(name, measured[i].device))
            return measured[i].rate;
    return 0;
}

static void print_bytes(double bytes)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB"};
    size_t unit = 0;
    for (; bytes >= 1000 && unit + 1 < COUNT(units); unit++)
        bytes /= 1000;
    printf(unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}

/* A launch finds its data in the cache, where all copies fit into it. */
static void print_protocol(const Bench *b)
{
    double all = (double)b->copies * (double)b->copy_bytes;
    printf("bench: %u replays of a graph of %u launches, over %u cop%s of all buffers (",
           b->graph.count, b->graph.launches, b->copies, b->copies == 1 ? "y" : "ies");
    print_bytes(all);
    printf("; the L2 cache has ");
    print_bytes((double)b->measure.l2);
    puts(all < 2 * (double)b->measure.l2 ? ", which may keep them)" : ")");
}

/* ---- the table ------------------------------------------------------ */

enum { COLUMNS = MEASURED_WAYS, CELL = 40 };

static void print_row(const char *title, char cells[COLUMNS][CELL])
{
    printf("bench: %-12s  %-28s  %s\n", title, cells[0], cells[1]);
}

static void print_times(const Summary columns[COLUMNS])
{
    char medians[COLUMNS][CELL], spreads[COLUMNS][CELL];
    for (size_t i = 0; i < COLUMNS; i++) {
        const Summary *c = &columns[i];
        snprintf(medians[i], CELL, "%.3f us", c->median);
        snprintf(spreads[i], CELL, "%.3f .. %.3f us", c->low, c->high);
    }
    print_row("median", medians);
    print_row("10th .. 90th", spreads);
}

static void print_rates(const Bench *b, const Summary columns[COLUMNS])
{
    char cells[COLUMNS][CELL];
    double peak = peak_rate(b);
    for (size_t i = 0; i < COLUMNS; i++) {
        double rate = (double)b->bytes / columns[i].median * 1e-6;
        int n = snprintf(cells[i], CELL, "%.3f TB/s", rate);
        if (peak > 0 && n > 0 && n < CELL)
            snprintf(cells[i] + n, CELL - (size_t)n, ", %.1f %% of %.2f", 100 * rate / peak,
                     peak);
    }
    print_row("bandwidth", cells);
}

void bench_report(Bench *b)
{
    Measured *m = &b->run->measured;
    const Summary columns[COLUMNS] = {measure_summary(&b->graph),
                                      measure_summary(&b->events)};
    m->launches = b->graph.launches;
    m->copies = b->copies;
    m->bytes = b->bytes;
    memcpy(m->times, columns, sizeof m->times);
    char titles[COLUMNS][CELL] = {"graph", "events, after a read flush of L2"};
    print_protocol(b);
    print_row("", titles);
    print_times(columns);
    print_rates(b, columns);
    printf("bench: %-12s  ", "bytes");
    print_bytes((double)b->bytes);
    puts(" a launch: the buffers of all arguments, once each; what the program reads\n"
         "bench:               more often, or not at all, is not known");
}
