/* The matmul library on a device that need not be there, and the command `plan`. */
#include "tilus-matmul/tool.h"

#include "common/file.h"
#include "tilus/tilus.h"

#include <stdio.h>
#include <stdlib.h>

const char *const zeros_names[] = {"none", "integer", "float", NULL};
const char *const function_names[] = {"none", "silu", "gelu", NULL};

static bool find_device(Library *l, const char *name)
{
    l->device = tilus_find_device(name);
    if (l->device)
        return true;
    fprintf(stderr, TOOL ": error: --device=%s: no such device; there are", name);
    for (size_t i = 0; tilus_known_device(i); i++)
        fprintf(stderr, "%s %s", i ? "," : "", tilus_known_device(i)->key);
    fputc('\n', stderr);
    return false;
}

static bool open_runtime(Library *l, bool runs)
{
    char message[MESSAGE];
    const tilus_rt_options options = {
        .struct_size = sizeof options, .devices = l->device, .device_count = l->device != NULL,
        .engine = runs && l->device ? tilus_cpu_engine() : NULL};
    tilus_status status = tilus_rt_open(&options, &l->rt, message, sizeof message);
    return status == TILUS_OK || fail("%s: %s", tilus_status_name(status), message);
}

bool library_open(Library *l, const Settings *s, bool runs)
{
    size_t size;
    bool on_gpu = runs && s->engine == ENGINE_GPU;
    *l = (Library){0};
    if ((!on_gpu && !find_device(l, s->device)) || !open_runtime(l, runs))
        return false;
    if (s->tunings && !file_read(TOOL, s->tunings, TEXT_SIZE_MAX, &l->tunings, &size))
        return false;
    const tilus_matmul_options options = {.struct_size = sizeof options, .tunings = l->tunings,
                                          .compile = runs ? tilus_matmul_compile : NULL};
    tilus_status status = tilus_matmul_open(l->rt, &options, &l->matmul);
    return status == TILUS_OK || fail("%s: %s", tilus_status_name(status), tilus_rt_error());
}

void library_close(Library *l)
{
    tilus_matmul_close(l->matmul);
    tilus_rt_close(l->rt);
    free(l->tunings);
    *l = (Library){0};
}

tilus_matmul_problem problem_of(const Settings *s, int64_t n, int64_t k)
{
    return (tilus_matmul_problem){
        .struct_size = sizeof(tilus_matmul_problem), .weights = s->weights,
        .activations = s->activations, .scales = s->scales, .result = s->result, .n = n, .k = k,
        .group = s->group, .zeros = (tilus_zeros)s->zeros, .n_tile = s->n_tile,
        .experts = s->experts, .top = s->top, .gather = s->gather, .scatter = s->scatter,
        .combine = s->combine, .early_routing = s->early_routing, .batch_invariant = s->batch_invariant,
        .wide_range = s->wide_range, .product = s->product,
        .function = (tilus_epilogue)s->function, .gated = s->gated};
}

tilus_matmul_plan *library_plan(const Library *l, const tilus_matmul_problem *problem)
{
    tilus_matmul_plan *plan;
    tilus_status status = tilus_matmul_plan_create(l->matmul, problem, 0, &plan);
    if (status == TILUS_OK)
        return plan;
    fail("%s", tilus_rt_error());
    return NULL;
}

/* ---- plan ---------------------------------------------------------------------- */

static bool describe(const tilus_matmul_plan *plan, const Settings *s)
{
    for (size_t i = 0; i < s->m_count; i++) {
        char *text = tilus_matmul_describe(plan, s->m[i]);
        if (!text)
            return fail("out of memory");
        printf("%s%s", i ? "\n" : "", text);
        tilus_free(text);
    }
    char *kernels = tilus_matmul_kernels(plan, most_rows(s));
    if (!kernels)
        return fail("out of memory");
    printf("\nkernels for up to %lld rows:\n%s", (long long)most_rows(s), kernels);
    tilus_free(kernels);
    return true;
}

int command_plan(const Settings *s)
{
    Library l;
    const tilus_matmul_problem problem = problem_of(s, s->n, s->k);
    tilus_matmul_plan *plan = library_open(&l, s, false) ? library_plan(&l, &problem) : NULL;
    bool ok = plan && describe(plan, s);
    tilus_matmul_plan_free(plan);
    library_close(&l);
    return ok ? EXIT_OK : EXIT_DIAGNOSTICS;
}
