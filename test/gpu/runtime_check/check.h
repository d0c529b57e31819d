/* runtime_check: what its checks have in common. */
#ifndef TILUS_TEST_RUNTIME_CHECK_H
#define TILUS_TEST_RUNTIME_CHECK_H

#include "raw_driver.h"
#include "tilus/runtime.h"

enum {
    N = 4096,               /* elements of each buffer */
    BLOCK = 128,            /* of them, a block */
    STREAMS = 4,
    ROUNDS = 200            /* launches on each stream */
};

/* The programs of programs.tilus. */
extern const tilus_kernel_info accumulate, accumulate_in_workspace, accumulate_early;

/* An artefact's bytes; NULL for a device that cannot run it. */
typedef struct File {
    char *bytes;
    size_t size;
} File;

typedef struct Check {
    const char *target;
    char *ptx, *cubin;          /* cubin: NULL without one */
    size_t cubin_size;
    File boxes, pairs;          /* @copy_boxes and @copy_in_pairs of programs_sm90.tilus */
    tilus_rt *rt;
    RawDriver raw;
    void *context;              /* of device 0 */
    void *streams[STREAMS];     /* on device 0 */
    bool failed, skipped;       /* the check that runs */
    int failures;
    char log[512];              /* the runtime's last line */
} Check;

/* Memory of one stream, N elements each: x[i] = i, and y[i] = k * i after k launches. */
typedef struct Buffers {
    int device;
    uint64_t x, y, workspace;
} Buffers;

/* ---- reports -------------------------------------------------------------- */

/* The first failure of a check is its report. */
void fail_check(Check *c, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Skips a check that cannot run here. */
void skip_check(Check *c, const char *name, const char *why);

void expect_ok(Check *c, const char *name, tilus_status status);
void expect_raw(Check *c, const char *name, int result);

/* Checks that a call failed like this, and that its text has both parts. */
void expect_error(Check *c, const char *name, tilus_status got, tilus_status status,
                  const char *part, const char *other);

/* ---- kernels and buffers -------------------------------------------------- */

tilus_artefact make_artefact(const Check *c, const tilus_kernel_info *info, bool with_cubin);

/* NULL after a failure, which is reported; the caller unloads them. */
tilus_kernel *make_kernel(Check *c, const char *name, const tilus_kernel_info *info,
                          bool with_cubin);
tilus_kernel *prepare_kernel(Check *c, const char *name, const tilus_kernel_info *info,
                             int device);

Buffers make_buffers(Check *c, const char *name, int device);
void free_buffers(Check *c, const Buffers *b);
tilus_status launch(tilus_kernel *kernel, void *stream, const Buffers *b);

/* Waits, and compares y after so many launches. */
void expect_sums(Check *c, const char *name, const Buffers *b, int launches);

/* ---- programs_sm90.tilus -------------------------------------------------- */

enum { COLUMNS = 128, ROWS = 4 * N / COLUMNS };     /* of a buffer, in bytes */

/* A kernel that is prepared on device 0; NULL after a failure, and where there is no file,
 * which skips the check. */
tilus_kernel *prepare_file(Check *c, const char *name, const File *file);

/* Copies rows of b->x to b->y. */
tilus_status launch_copy(tilus_kernel *kernel, void *stream, const Buffers *b, int rows,
                         int columns);

/* ---- checks --------------------------------------------------------------- */

/* In a process of its own, before this one has a driver. */
void names_a_lost_context(Check *c);

/* They run in this order. */
#define CHECKS(CHECK)                                                                        \
    CHECK(launches_ptx)                                                                      \
    CHECK(launches_machine_code)                                                             \
    CHECK(uses_all_shared_memory)                                                            \
    CHECK(two_streams_have_workspaces)                                                       \
    CHECK(threads_share_a_kernel)                                                            \
    CHECK(two_devices_run)                                                                   \
    CHECK(graphs_replay)                                                                     \
    CHECK(captures_survive_preparing)                                                        \
    CHECK(captures_refuse_loading)                                                           \
    CHECK(early_launches_keep_their_order)                                                   \
    CHECK(early_launches_replay)                                                             \
    CHECK(refuses_a_misaligned_pointer)                                                      \
    CHECK(refuses_too_much_shared_memory)                                                    \
    CHECK(reports_invalid_ptx)                                                               \
    CHECK(reports_new_ptx)                                                                   \
    CHECK(reports_an_absent_entry)                                                           \
    CHECK(launches_tensor_maps)                                                              \
    CHECK(launches_clusters)                                                                 \
    CHECK(refuses_tensors_without_a_map)                                                     \
    CHECK(refuses_a_torn_cluster)                                                            \
    CHECK(refuses_a_target_of_other_devices)                                                 \
    CHECK(refuses_tensor_copies_for_an_old_target)                                           \
    CHECK(tells_a_forked_child)                                                              \
    CHECK(measures_loading)                                                                  \
    CHECK(measures_launches)                                                                 \
    CHECK(measures_launches_with_maps)                                                       \
    CHECK(measures_launches_of_clusters)

#define CHECK(name) void name(Check *, const char *);
CHECKS(CHECK)
#undef CHECK

#endif
