/* The faults that a real driver survives, and one that it does not. */
#define _GNU_SOURCE
#include "check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- faults --------------------------------------------------------------- */

void refuses_a_misaligned_pointer(Check *c, const char *name)
{
    tilus_kernel *kernel = prepare_kernel(c, name, &accumulate, 0);
    Buffers b = make_buffers(c, name, 0), shifted = b;
    shifted.y += 4;
    if (kernel)
        expect_error(c, name, launch(kernel, c->streams[0], &shifted), TILUS_ERROR_ARGUMENT,
                     "argument %y = 0x", "is not aligned to 16 bytes");
    expect_sums(c, name, &b, 0);
    free_buffers(c, &b);
    tilus_kernel_unload(kernel);
}

/* An artefact that cannot be prepared. */
static void expect_unprepared(Check *c, const char *name, const tilus_artefact *artefact,
                              tilus_status status, const char *part, const char *other)
{
    tilus_kernel *kernel = NULL;
    expect_ok(c, name, tilus_kernel_create(c->rt, artefact, &kernel));
    if (kernel)
        expect_error(c, name, tilus_kernel_prepare(kernel, 0), status, part, other);
    tilus_kernel_unload(kernel);
}

void refuses_too_much_shared_memory(Check *c, const char *name)
{
    tilus_kernel_info info = accumulate;
    char has[64];
    info.shared_bytes = tilus_rt_shared_memory(c->rt, 0) + 1;
    snprintf(has, sizeof has, "the device has %zu", info.shared_bytes - 1);
    const tilus_artefact artefact = {.info = &info, .target = c->target, .ptx = c->ptx};
    expect_unprepared(c, name, &artefact, TILUS_ERROR_UNSUPPORTED, "a block needs", has);
}

/* With an instruction that is none, whose line the JIT compiler tells. */
void reports_invalid_ptx(Check *c, const char *name)
{
    char *bad = strdup(c->ptx), *place = strstr(bad, "ld.global");
    if (place)
        memcpy(place, "xx", 2);
    const tilus_artefact artefact = {.info = &accumulate, .target = c->target, .ptx = bad};
    expect_unprepared(c, name, &artefact, TILUS_ERROR_DRIVER, "CUDA_ERROR_INVALID_PTX",
                      "line ");
    free(bad);
}

void reports_new_ptx(Check *c, const char *name)
{
    char *newer = strdup(c->ptx), *place = strstr(newer, ".version ");
    if (place)
        memcpy(place, ".version 9.9", strlen(".version 9.9"));
    const tilus_artefact artefact = {
        .info = &accumulate, .target = c->target, .ptx = newer, .ptx_version = 99};
    expect_unprepared(c, name, &artefact, TILUS_ERROR_UNSUPPORTED,
                      "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the PTX is of version 9.9");
    free(newer);
}

void reports_an_absent_entry(Check *c, const char *name)
{
    tilus_kernel_info info = accumulate;
    info.name = "nobody";
    const tilus_artefact artefact = {.info = &info, .target = c->target, .ptx = c->ptx};
    expect_unprepared(c, name, &artefact, TILUS_ERROR_DRIVER, "kernel @nobody",
                      "CUDA_ERROR_NOT_FOUND");
}

void tells_a_forked_child(Check *c, const char *name)
{
    tilus_kernel *kernel = prepare_kernel(c, name, &accumulate, 0);
    Buffers b = make_buffers(c, name, 0);
    if (!kernel)
        return;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(launch(kernel, c->streams[0], &b) != TILUS_ERROR_STATE);
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        fail_check(c, name, "the child ended with status %d", status);
    expect_ok(c, name, launch(kernel, c->streams[0], &b));
    expect_sums(c, name, &b, 1);
    free_buffers(c, &b);
    tilus_kernel_unload(kernel);
}

/* ---- a lost context, in a process of its own ------------------------------ */

static void lose_the_context(Check *c, const char *name)
{
    char message[1024];
    if (tilus_rt_open(NULL, &c->rt, message, sizeof message) != TILUS_OK) {
        fail_check(c, name, "%s", message);
        return;
    }
    tilus_kernel *kernel = prepare_kernel(c, name, &accumulate, 0);
    const Buffers nowhere = {.x = 0x10, .y = 0x10};
    if (kernel) {
        expect_ok(c, name, launch(kernel, (void *)2, &nowhere));
        for (int i = 0; i < 2; i++)
            expect_error(c, name, tilus_rt_synchronize(c->rt, 0), TILUS_ERROR_LOST,
                         "context lost: kernel @accumulate, grid [32, 1, 1]",
                         "CUDA_ERROR_ILLEGAL_ADDRESS");
        expect_error(c, name, launch(kernel, (void *)2, &nowhere), TILUS_ERROR_LOST,
                     "context lost", "");
    }
    tilus_kernel_unload(kernel);
    tilus_rt_close(c->rt);
    c->rt = NULL;
}

/* Before this process has a driver, which a child could not use. */
void names_a_lost_context(Check *c)
{
    static const char name[] = "names_a_lost_context";
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        lose_the_context(c, name);
        if (!c->failed)
            printf("PASS %s\n", name);
        fflush(stdout);
        _exit(c->failed);
    }
    int status = -1;
    c->failures += child < 0 || waitpid(child, &status, 0) != child || status != 0;
    if (status != 0 && !WIFEXITED(status))
        printf("FAIL %s: the process ended by a signal\n", name);
}
