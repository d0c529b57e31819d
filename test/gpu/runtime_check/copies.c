/* Kernels of sm_90 with tensor maps and with clusters: launches, and those that are refused by
 * a named error. */
#define _GNU_SOURCE
#include "check.h"

/* ---- kernels and launches ------------------------------------------------- */

tilus_kernel *prepare_file(Check *c, const char *name, const File *file)
{
    tilus_kernel *kernel = NULL;
    if (!file->bytes) {
        skip_check(c, name, "needs sm_90");
        return NULL;
    }
    expect_ok(c, name, tilus_kernel_load(c->rt, file->bytes, file->size, &kernel));
    if (kernel)
        expect_ok(c, name, tilus_kernel_prepare(kernel, 0));
    return kernel;
}

tilus_status launch_copy(tilus_kernel *kernel, void *stream, const Buffers *b, int rows,
                         int columns)
{
    const tilus_arg args[] = {
        {.pointer = b->x}, {.pointer = b->y}, {.integer = rows}, {.integer = columns}};
    return tilus_launch(kernel, stream, args, 4, 0, 0);
}

/* x[i] = i, so a copy is what one launch of @accumulate gives. */
static void check_copy(Check *c, const char *name, const File *file)
{
    tilus_kernel *kernel = prepare_file(c, name, file);
    if (!kernel)
        return;
    Buffers b = make_buffers(c, name, 0);
    expect_ok(c, name, launch_copy(kernel, c->streams[0], &b, ROWS, COLUMNS));
    expect_sums(c, name, &b, 1);
    free_buffers(c, &b);
    tilus_kernel_unload(kernel);
}

void launches_tensor_maps(Check *c, const char *name)
{
    check_copy(c, name, &c->boxes);
}

void launches_clusters(Check *c, const char *name)
{
    check_copy(c, name, &c->pairs);
}

/* ---- launches that are refused -------------------------------------------- */

void refuses_tensors_without_a_map(Check *c, const char *name)
{
    tilus_kernel *kernel = prepare_file(c, name, &c->boxes);
    if (!kernel)
        return;
    Buffers b = make_buffers(c, name, 0), shifted = b;
    shifted.y += 8;
    expect_error(c, name, launch_copy(kernel, c->streams[0], &shifted, ROWS / 2, COLUMNS),
                 TILUS_ERROR_ARGUMENT, "tensor map of argument %y: the address 0x",
                 "is not aligned to 16 bytes");
    expect_error(c, name, launch_copy(kernel, c->streams[0], &b, ROWS / 2, COLUMNS - 8),
                 TILUS_ERROR_ARGUMENT, "tensor map of argument %x: stride 0 is 120 bytes",
                 "a multiple of 16");
    expect_error(c, name, launch_copy(kernel, c->streams[0], &b, ROWS / 2, 0),
                 TILUS_ERROR_ARGUMENT, "tensor map of argument %x: the extent of dimension 1 is 0", "");
    expect_sums(c, name, &b, 0);
    free_buffers(c, &b);
    tilus_kernel_unload(kernel);
}

void refuses_a_torn_cluster(Check *c, const char *name)
{
    tilus_kernel *kernel = prepare_file(c, name, &c->pairs);
    if (!kernel)
        return;
    Buffers b = make_buffers(c, name, 0);
    expect_error(c, name, launch_copy(kernel, c->streams[0], &b, ROWS - 32, COLUMNS),
                 TILUS_ERROR_ARGUMENT, "the grid's extent of dimension 0 is 3", "a multiple of the cluster's 2");
    expect_sums(c, name, &b, 0);
    free_buffers(c, &b);
    tilus_kernel_unload(kernel);
}

/* The program, with tensor maps, as an artefact of this target would be. */
static void expect_refused(Check *c, const char *name, const char *target, tilus_status status,
                           const char *part, const char *other)
{
    tilus_kernel *kernel = prepare_file(c, name, &c->boxes), *copy = NULL;
    if (!kernel)
        return;
    tilus_artefact artefact = *tilus_kernel_artefact(kernel);
    artefact.target = target;
    artefact.cubin = NULL;
    artefact.cubin_size = 0;
    expect_ok(c, name, tilus_kernel_create(c->rt, &artefact, &copy));
    if (copy)
        expect_error(c, name, tilus_kernel_prepare(copy, 0), status, part, other);
    tilus_kernel_unload(copy);
    tilus_kernel_unload(kernel);
}

/* A device of sm_90 runs no code for others of its kind. */
void refuses_a_target_of_other_devices(Check *c, const char *name)
{
    expect_refused(c, name, "sm_91a", TILUS_ERROR_UNSUPPORTED, "kernel @copy_boxes",
                   "the device does not run code for sm_91a");
}

/* tilus-llc compiles no such program: an artefact is edited. */
void refuses_tensor_copies_for_an_old_target(Check *c, const char *name)
{
    expect_refused(c, name, "sm_80", TILUS_ERROR_UNSUPPORTED, "kernel @copy_boxes",
                   "tensor maps need sm_90 or newer, the code is for sm_80");
}
