/* The runtime on the real driver: what test/unit/test_runtime*.c shows on a fake one, and
 * what only a device can show.
 *
 *     runtime_check --target sm_90a --ptx FILE [--cubin FILE] [--boxes FILE --pairs FILE]
 *
 * with programs.tilus, compiled, and artefacts of programs_sm90.tilus. Prints lines
 *
 *     PASS name        FAIL name: why        SKIP name: why        NUMBER name value unit
 *
 * and fails when there is a FAIL. */
#define _GNU_SOURCE
#include "check.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    void (*run)(Check *c, const char *name);
} checks[] = {
#define CHECK(name) {#name, name},
    CHECKS(CHECK)
#undef CHECK
};

/* The whole file, with a NUL behind it. */
static char *read_file(const char *path, size_t *size)
{
    FILE *in = fopen(path, "rb");
    char *bytes = NULL;
    long end = in && fseek(in, 0, SEEK_END) == 0 ? ftell(in) : -1;
    if (end >= 0 && fseek(in, 0, SEEK_SET) == 0 && (bytes = calloc(1, (size_t)end + 1)))
        *size = fread(bytes, 1, (size_t)end, in);
    if (in)
        fclose(in);
    if (!bytes)
        fprintf(stderr, "runtime_check: cannot read %s\n", path);
    return bytes;
}

static bool read_options(Check *c, int argc, char **argv)
{
    size_t size;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--target") == 0)
            c->target = argv[i + 1];
        else if (strcmp(argv[i], "--ptx") == 0)
            c->ptx = read_file(argv[i + 1], &size);
        else if (strcmp(argv[i], "--cubin") == 0)
            c->cubin = read_file(argv[i + 1], &c->cubin_size);
        else if (strcmp(argv[i], "--boxes") == 0)
            c->boxes.bytes = read_file(argv[i + 1], &c->boxes.size);
        else if (strcmp(argv[i], "--pairs") == 0)
            c->pairs.bytes = read_file(argv[i + 1], &c->pairs.size);
        else
            return false;
    }
    return argc % 2 == 1 && c->target && c->ptx;
}

static void keep_line(void *data, const char *line)
{
    Check *c = data;
    snprintf(c->log, sizeof c->log, "%s", line);
}

static void open_driver(Check *c, const char *name)
{
    const tilus_rt_options options = {.struct_size = sizeof options,
                                      .log = keep_line, .log_data = c};
    char message[1024];
    int device = 0;
    if (tilus_rt_open(&options, &c->rt, message, sizeof message) != TILUS_OK)
        fail_check(c, name, "%s", message);
    else if (!raw_driver_find(&c->raw))
        fail_check(c, name, "the driver is too old for this check");
    if (c->failed)
        return;
    expect_raw(c, name, c->raw.cuDeviceGet(&device, 0));
    expect_raw(c, name, c->raw.cuDevicePrimaryCtxRetain(&c->context, device));
    expect_raw(c, name, c->raw.cuCtxSetCurrent(c->context));
    for (int i = 0; i < STREAMS; i++)
        expect_raw(c, name, c->raw.cuStreamCreate(&c->streams[i], STREAM_NON_BLOCKING));
}

static void close_driver(Check *c)
{
    int device = 0;
    for (int i = 0; i < STREAMS; i++)
        if (c->streams[i])
            c->raw.cuStreamDestroy_v2(c->streams[i]);
    if (c->context && c->raw.cuDeviceGet(&device, 0) == 0)
        c->raw.cuDevicePrimaryCtxRelease_v2(device);
    tilus_rt_close(c->rt);
}

int main(int argc, char **argv)
{
    Check c = {0};
    if (!read_options(&c, argc, argv)) {
        fprintf(stderr, "usage: %s --target SM --ptx FILE [--cubin FILE] [--boxes FILE --pairs "
                "FILE]\n", argv[0]);
        return 2;
    }
    setenv("CUDA_CACHE_DISABLE", "1", 1);
    names_a_lost_context(&c);
    open_driver(&c, "opens");
    for (size_t i = 0; i < sizeof checks / sizeof *checks && c.context; i++) {
        c.failed = c.skipped = false;
        checks[i].run(&c, checks[i].name);
        if (!c.failed && !c.skipped)
            printf("PASS %s\n", checks[i].name);
        fflush(stdout);
    }
    close_driver(&c);
    free(c.ptx);
    free(c.cubin);
    free(c.boxes.bytes);
    free(c.pairs.bytes);
    return c.failures > 0;
}
