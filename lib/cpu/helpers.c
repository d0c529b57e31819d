/* The helpers of control: who am I, barriers, the end, print. A row of
 * intrinsics.def without a helper is a link error. */
#define _GNU_SOURCE
#include "cpu/machine.h"

#include "support/numeral.h"

#include <stdio.h>
#include <string.h>

Helper *const cpu_helpers[INTR_COUNT] = {
#define INTRINSIC(id, name, signature, sm, ptx, convergent, ...) [INTR_##id] = cpu_##id,
#include "codegen/intrinsics.def"
};

void *helper_address(uint64_t word, unsigned align)
{
    if (word & (align - 1))
        fault_now("an access of %u bytes at an address that is not a multiple of %u", align,
                  align);
    return (void *)(uintptr_t)word;
}

/* ---- indices ------------------------------------------------------------- */

void cpu_thread_index(const uint64_t *args, uint64_t *results)
{
    (void)args;
    results[0] = this_thread()->number;
}

void cpu_thread_again(const uint64_t *args, uint64_t *results)
{
    cpu_thread_index(args, results);
}

void cpu_block_index_x(const uint64_t *args, uint64_t *results)
{
    (void)args;
    results[0] = (uint64_t)cpu_worker->index[0];
}

void cpu_block_index_y(const uint64_t *args, uint64_t *results)
{
    (void)args;
    results[0] = (uint64_t)cpu_worker->index[1];
}

void cpu_block_index_z(const uint64_t *args, uint64_t *results)
{
    (void)args;
    results[0] = (uint64_t)cpu_worker->index[2];
}

void cpu_grid_extent_x(const uint64_t *args, uint64_t *results)
{
    (void)args;
    results[0] = (uint64_t)cpu_worker->machine->grid[0];
}

void cpu_grid_extent_y(const uint64_t *args, uint64_t *results)
{
    (void)args;
    results[0] = (uint64_t)cpu_worker->machine->grid[1];
}

void cpu_grid_extent_z(const uint64_t *args, uint64_t *results)
{
    (void)args;
    results[0] = (uint64_t)cpu_worker->machine->grid[2];
}

void cpu_cluster_rank(const uint64_t *args, uint64_t *results)
{
    (void)args;
    results[0] = cpu_worker->rank;
}

void cpu_shared_memory(const uint64_t *args, uint64_t *results)
{
    (void)args;
    results[0] = (uintptr_t)cpu_worker->shared.data;
}

/* ---- barriers ------------------------------------------------------------ */

void cpu_barrier(const uint64_t *args, uint64_t *results)
{
    (void)results;
    wait_barrier(INTR_barrier, args[0], cpu_worker->machine->thread_count);
}

void cpu_group_barrier(const uint64_t *args, uint64_t *results)
{
    (void)results;
    wait_barrier(INTR_group_barrier, args[0], args[1]);
}

/* Threads wait where they ask for the wait. */
void cpu_cluster_arrive(const uint64_t *args, uint64_t *results)
{
    (void)args;
    (void)results;
}

void cpu_cluster_wait(const uint64_t *args, uint64_t *results)
{
    (void)args;
    (void)results;
    wait_cluster(INTR_cluster_wait);
}

/* Finds the same place in another block's shared memory. */
void cpu_cluster_address(const uint64_t *args, uint64_t *results)
{
    const unsigned char *at = helper_address(args[0], 1);
    results[0] = (uintptr_t)(worker_of_rank(args[1])->shared.data +
                             (at - cpu_worker->shared.data));
}

/* Compiled code always names all lanes. */
void cpu_warp_barrier(const uint64_t *args, uint64_t *results)
{
    wait_warp(INTR_warp_barrier, args, results, NULL);
}

/* Threads have the registers of a CPU, tensor maps are at hand, and launches run one after the
 * other. */
#define NO_HELPER(id)                                                         \
    void cpu_##id(const uint64_t *args, uint64_t *results)                    \
    {                                                                         \
        (void)args;                                                           \
        (void)results;                                                        \
    }

NO_HELPER(setmaxnreg_inc)
NO_HELPER(setmaxnreg_dec)
NO_HELPER(map_prefetch)
NO_HELPER(launch_dependents)
NO_HELPER(wait_dependencies)

void cpu_trap(const uint64_t *args, uint64_t *results)
{
    (void)args;
    (void)results;
    fault_now("an assertion does not hold");
}

/* ---- print --------------------------------------------------------------- */

/* Where vprintf's output goes, in pieces. */
static void say(const char *text, size_t len)
{
    const tilus_cpu_options *o = cpu_worker->machine->options;
    if (o->print && len > 0)
        o->print(o->printer, text, len);
}

/* Prints by a conversion `spec` of a long long or a double. */
static void say_argument(const char *spec, uint64_t word)
{
    char text[512];
    int len;
    if (strpbrk(spec, "eEfFgGaA")) {
        double v;
        memcpy(&v, &word, sizeof v);
        len = numeral_format(text, sizeof text, spec, v);
    } else {
        len = snprintf(text, sizeof text, spec, (long long)word);
    }
    say(text, len < (int)sizeof text ? (size_t)len : sizeof text - 1);
}

/* Says what `format` asks for, with arguments of 64 bits. */
static void say_all(const char *format, const uint64_t *words)
{
    char spec[32];
    while (*format) {
        size_t plain = strcspn(format, "%");
        say(format, plain);
        format += plain;
        if (!*format)
            return;
        size_t len = 1 + strcspn(format + 1, "%diouxXeEfFgGaA") + 1;
        if (format[len - 1] == '%') {
            say("%", 1);
        } else {
            snprintf(spec, sizeof spec, "%.*s", (int)len, format);
            say_argument(spec, *words++);
        }
        format += len;
    }
}

/* Blocks of other host threads print, too. */
void cpu_print(const uint64_t *args, uint64_t *results)
{
    mtx_t *printing = &cpu_worker->machine->printing;
    mtx_lock(printing);
    say_all((const char *)(uintptr_t)args[0], (const uint64_t *)(uintptr_t)args[1]);
    mtx_unlock(printing);
    results[0] = 0;
}
