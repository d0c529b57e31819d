/* C functions in place of a compiled program, for tests of the CPU engine's machine.
 * Include after cmocka. */
#ifndef TILUS_TEST_CPU_THREADS_H
#define TILUS_TEST_CPU_THREADS_H

#include "cpu/machine.h"

#include <string.h>

typedef void Entry(const uint64_t *args);

/* A block of `machine`'s; the fault, or one that was not found. */
static inline Fault run_block(Machine *machine)
{
    static const Program no_program = {.name = "test", .grid_rank = 1, .cluster = {1, 1, 1},
                                       .loc = {1, 1, 1}};
    Worker w;
    machine->program = &no_program;
    machine->grid[0] = machine->grid[1] = machine->grid[2] = machine->blocks = 1;
    machine->together[0] = machine->together[1] = machine->together[2] = machine->cluster = 1;
    machine->mbarriers = LIMIT_MBARRIERS;
    assert_true(worker_open(&w, machine));
    assert_true(signals_enter(&w));
    bool ok = worker_run_cluster(&w, 0);
    signals_leave(&w);
    Fault fault = w.fault;
    worker_close(&w);
    assert_int_equal(ok, !fault.found);
    return fault;
}

static inline void assert_runs(Fault f)
{
    if (f.found)
        fail_msg("%s", f.message.text);
}

static inline void assert_fault(Fault f, const char *part)
{
    assert_true(f.found);
    if (!strstr(f.message.text, part))
        fail_msg("'%s' is not in '%s'", part, f.message.text);
}

#endif
