/* tilus_jit: text to artefacts, with a cache and without. Linked with --wrap for malloc,
 * calloc and strdup, so that any such allocation of the library can be made to fail. */
#define _GNU_SOURCE
#include "cache_fixture.h"
#include "failing_memory.h"

#include "tilus/artefact.h"

#include <pthread.h>
#include <stdio.h>

/* ---- programs --------------------------------------------------------------------- */

#define SIZED .struct_size = sizeof(tilus_jit_options)

static const char text[] =
    "tilus 1\n"
    "param STEPS = 3, T: type = f32\n"
    "program @fill<1>(%a: ptr<T> {align = 16}) warps(1) {\n"
    "  %g = view_global %a : T[32]\n"
    "  %x = allocate_register STEPS : T[32] @ spatial(32)\n"
    "  store_global %x, %g[0]\n"
    "}\n";

static const char two_programs[] = "program @b<1>() warps(1) { }\n"
                                   "program @a<1>() warps(2) { }\n";

/* The bytes of one call. */
typedef struct Result {
    tilus_status status;
    void *bytes;
    size_t size;
    char message[256];          /* the first */
    unsigned line, column;      /* of it */
} Result;

static Result jit(const char *program, const tilus_jit_options *options)
{
    tilus_diag *diag = tilus_diag_new();
    Result r = {0};
    r.status = tilus_jit(diag, program, strlen(program), options, &r.bytes, &r.size);
    if (tilus_diag_count(diag)) {
        snprintf(r.message, sizeof r.message, "%s", tilus_diag_text(diag, 0));
        r.line = tilus_diag_line(diag, 0);
        r.column = tilus_diag_column(diag, 0);
    }
    tilus_diag_free(diag);
    assert_true((r.status == TILUS_OK) == (r.bytes != NULL));
    return r;
}

static tilus_artefact *read_artefact(const Result *r)
{
    char message[256] = "";
    tilus_artefact *artefact;
    if (r->status != TILUS_OK)
        fail_msg("%s: %s", tilus_status_name(r->status), r->message);
    if (tilus_artefact_read(r->bytes, r->size, &artefact, message, sizeof message) != TILUS_OK)
        fail_msg("%s", message);
    return artefact;
}

static tilus_cache *open_cache(void)
{
    const tilus_cache_options options = {.struct_size = sizeof options,
                                        .directory = directory, .warn = warnings_add,
                                         .user = &warnings};
    tilus_cache *cache = tilus_cache_open(&options);
    assert_non_null(cache);
    return cache;
}

static uint64_t hits_of(tilus_cache *cache)
{
    tilus_cache_stats stats = {.struct_size = sizeof stats};
    tilus_cache_get_stats(cache, &stats);
    return stats.hits;
}

/* ---- what comes out --------------------------------------------------------------- */

static void compiles_to_an_artefact(void **state)
{
    (void)state;
    const tilus_define defines[] = {{"T", "f16"}, {"STEPS", "5"}};
    const tilus_jit_options options = {.struct_size = sizeof options,
                                       .target = "sm_90a", .opt_level = 3, .defines = defines,
                                       .define_count = 2};
    Result r = jit(text, &options);
    tilus_artefact *artefact = read_artefact(&r);
    assert_string_equal(artefact->info->name, "fill");
    assert_string_equal(artefact->target, "sm_90a");
    assert_int_equal(artefact->ptx_version, 80);
    assert_contains(artefact->ptx, ".visible .entry fill(");
    assert_null(artefact->cubin);
    assert_string_equal(artefact->source, text);
    assert_string_equal(artefact->parameters, "T=f16 STEPS=5");
    assert_contains(artefact->compiler, tilus_llvm_version());
    free(artefact);
    free(r.bytes);
}

static void takes_the_target_of_a_device(void **state)
{
    (void)state;
    static const struct {
        int capability;
        const char *target;
    } devices[] = {{80, "sm_80"}, {87, "sm_86"}, {90, "sm_90a"}};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        const tilus_jit_options options = {.struct_size = sizeof options,
                                        .capability = devices[i].capability};
        Result r = jit(text, &options);
        tilus_artefact *artefact = read_artefact(&r);
        assert_string_equal(artefact->target, devices[i].target);
        free(artefact);
        free(r.bytes);
    }
    Result r = jit(text, &(tilus_jit_options){.struct_size = sizeof(tilus_jit_options),
                                        .capability = 75});
    assert_int_equal(r.status, TILUS_ERROR_UNSUPPORTED);
    assert_string_equal(r.message, "no target for a device of compute capability 7.5; the "
                                   "oldest is sm_80");
}

static void chooses_the_program(void **state)
{
    (void)state;
    tilus_jit_options options = {.struct_size = sizeof options, .target = "sm_80", .program = "a"};
    Result r = jit(two_programs, &options);
    tilus_artefact *artefact = read_artefact(&r);
    assert_string_equal(artefact->info->name, "a");
    assert_int_equal(artefact->info->threads, 64);
    free(artefact);
    free(r.bytes);
    options.program = "c";
    r = jit(two_programs, &options);
    assert_int_equal(r.status, TILUS_ERROR_PROGRAM);
    assert_string_equal(r.message, "the module has no program @c");
    options.program = NULL;
    r = jit(two_programs, &options);
    assert_int_equal(r.status, TILUS_ERROR_PROGRAM);
    assert_string_equal(r.message, "2 programs, an artefact has one");
}

static void says_where_the_text_is_wrong(void **state)
{
    (void)state;
    const tilus_jit_options options = {.struct_size = sizeof options,
                                       .target = "sm_80", .file = "k.tilus"};
    Result r = jit("tilus 1\nprogram @p<1>() warps(1) {\n  %x = neg %y\n}\n", &options);
    assert_int_equal(r.status, TILUS_ERROR_PROGRAM);
    assert_string_equal(r.message, "%y is not defined");
    assert_int_equal(r.line, 3);
    assert_int_equal(r.column, 12);
    tilus_diag *diag = tilus_diag_new();
    char *printed;
    size_t size;
    void *bytes;
    tilus_jit(diag, "nothing\n", 8, &options, &bytes, &size);
    printed = tilus_diag_format(diag);
    assert_non_null(printed);
    assert_contains(printed, "k.tilus:1:1: error: ");
    tilus_free(printed);
    tilus_diag_free(diag);
    r = jit(text, &(tilus_jit_options){.struct_size = sizeof(tilus_jit_options),
                                       .target = "sm_70"});
    assert_int_equal(r.status, TILUS_ERROR_PROGRAM);
    assert_contains(r.message, "sm_70");
}

/* ---- through the cache ------------------------------------------------------------ */

static void compiles_once(void **state)
{
    (void)state;
    tilus_cache *cache = open_cache();
    tilus_jit_options options = {.struct_size = sizeof options, .target = "sm_80", .opt_level = 1};
    Result without = jit(text, &options);
    options.cache = cache;
    Result first = jit(text, &options), second = jit(text, &options);
    assert_int_equal(hits_of(cache), 1);
    assert_int_equal(first.size, without.size);
    assert_int_equal(second.size, without.size);
    assert_memory_equal(first.bytes, without.bytes, without.size);
    assert_memory_equal(second.bytes, without.bytes, without.size);
    free(without.bytes);
    free(first.bytes);
    free(second.bytes);
    tilus_cache_close(cache);
    assert_int_equal(warnings.count, 0);
}

/* Changes each input of a compilation: the key must change. */
static void everything_counts(void **state)
{
    (void)state;
    tilus_cache *cache = open_cache();
    static const tilus_define steps[] = {{"STEPS", "4"}, {"STEPS", "5"}};
    static const char spaced[] =
        "tilus 1\n\nprogram @fill<1>(%a: ptr<f32> {align = 16}) warps(1) { }\n";
    const struct {
        const char *text;
        tilus_jit_options options;
    } calls[] = {
        {text, {SIZED, .target = "sm_80"}},
        {text, {SIZED, .target = "sm_90"}},
        {text, {SIZED, .target = "sm_80", .opt_level = 1}},
        {text, {SIZED, .target = "sm_80", .features = "+ptx84"}},
        {text, {SIZED, .target = "sm_80", .debug_lines = true}},
        {text, {SIZED, .target = "sm_80", .debug_lines = true, .file = "other.tilus"}},
        {text, {SIZED, .target = "sm_80", .program = "fill"}},
        {text, {SIZED, .target = "sm_80", .defines = &steps[0], .define_count = 1}},
        {text, {SIZED, .target = "sm_80", .defines = &steps[1], .define_count = 1}},
        {spaced, {SIZED, .target = "sm_80"}},
        {two_programs, {SIZED, .target = "sm_80", .program = "a"}},
        {two_programs, {SIZED, .target = "sm_80", .program = "b"}},
    };
    enum { CALLS = sizeof calls / sizeof *calls };
    for (size_t round = 0; round < 2; round++)
        for (size_t i = 0; i < CALLS; i++) {
            tilus_jit_options options = calls[i].options;
            options.cache = cache;
            Result r = jit(calls[i].text, &options);
            assert_int_equal(r.status, TILUS_OK);
            assert_int_equal(hits_of(cache), round ? i + 1 : 0);
            free(r.bytes);
        }
    tilus_cache_close(cache);
}

/* Limits beyond which a program is optimized less, and loops are not unrolled. */
static void limits_count(void **state)
{
    (void)state;
    static const char *const names[] = {NULL, "optimized", "unrolled", "operations"};
    tilus_cache *cache = open_cache();
    const tilus_jit_options options = {SIZED, .target = "sm_80", .cache = cache};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tilus_diag *diag = tilus_diag_new();
        void *bytes;
        size_t size;
        assert_true(!names[i] || tilus_set_limit(diag, names[i], 1000));
        assert_int_equal(tilus_jit(diag, text, strlen(text), &options, &bytes, &size), TILUS_OK);
        assert_int_equal(hits_of(cache), 0);
        free(bytes);
        tilus_diag_free(diag);
    }
    tilus_cache_close(cache);
}

/* The name of a text in messages, and a device for its target, change nothing. */
static void nothing_else_counts(void **state)
{
    (void)state;
    tilus_cache *cache = open_cache();
    const tilus_jit_options calls[] = {{SIZED, .target = "sm_90a", .cache = cache},
                                       {SIZED, .capability = 90, .cache = cache},
                                       {SIZED, .capability = 90, .cache = cache, .file = "f"}};
    for (size_t i = 0; i < 3; i++) {
        Result r = jit(text, &calls[i]);
        assert_int_equal(r.status, TILUS_OK);
        assert_int_equal(hits_of(cache), i);
        free(r.bytes);
    }
    tilus_cache_close(cache);
}

/* Writes `step.tilus`, whose function adds `step`. */
static void write_import(const char *folder, const char *step)
{
    char path[TEST_PATH + 16];
    snprintf(path, sizeof path, "%s/step.tilus", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "function @step(%%x) { return %%x + %s }\n", step);
    assert_int_equal(fclose(file), 0);
}

/* A text that did not change is compiled anew when a file has that it imports. */
static void imported_files_count(void **state)
{
    (void)state;
    static const char importing[] =
        "import \"step.tilus\"\n"
        "program @fill<1>(%a: ptr<f32>) warps(1) {\n"
        "  %g = view_global %a : f32[32]\n"
        "  store_global @step(load_global %g[0] : f32[32] @ spatial(32)), %g[0]\n"
        "}\n";
    static const struct {
        const char *step;
        uint64_t hits;          /* of the call and all before it */
    } calls[] = {{"1", 0}, {"1", 1}, {"2", 1}, {"2", 2}, {"1", 3}};
    const char *paths[] = {directory};
    tilus_cache *cache = open_cache();
    const tilus_jit_options options = {.struct_size = sizeof options,
                                       .target = "sm_80", .cache = cache, .import_paths = paths,
                                       .import_path_count = 1};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        write_import(directory, calls[i].step);
        Result r = jit(importing, &options);
        tilus_artefact *artefact = read_artefact(&r);
        assert_non_null(strstr(artefact->ptx, *calls[i].step == '1' ? "0f3F800000" : "0f40000000"));
        assert_int_equal(hits_of(cache), calls[i].hits);
        free(artefact);
        free(r.bytes);
    }
    tilus_cache_close(cache);
}

static void keeps_no_failures(void **state)
{
    (void)state;
    tilus_cache *cache = open_cache();
    const tilus_jit_options options = {.struct_size = sizeof options,
                                       .target = "sm_80", .cache = cache};
    for (int i = 0; i < 2; i++) {
        Result r = jit("nothing\n", &options);
        assert_int_equal(r.status, TILUS_ERROR_PROGRAM);
        assert_int_equal(r.line, 1);
    }
    tilus_cache_stats stats = {.struct_size = sizeof stats};
    tilus_cache_get_stats(cache, &stats);
    assert_int_equal(stats.entries, 0);
    tilus_cache_close(cache);
}

/* Compiles through the cache that four threads share. */
static void *jit_in_thread(void *cache)
{
    enum { ROUNDS = 12, KERNELS = 4 };
    for (int i = 0; i < ROUNDS; i++) {
        char value[8];
        void *bytes;
        size_t size;
        snprintf(value, sizeof value, "%d", i % KERNELS);
        const tilus_define define = {"STEPS", value};
        const tilus_jit_options options = {.struct_size = sizeof options,
                                        .target = "sm_80", .cache = cache,
                                           .defines = &define, .define_count = 1};
        tilus_diag *diag = tilus_diag_new();
        if (tilus_jit(diag, text, strlen(text), &options, &bytes, &size) != TILUS_OK)
            return NULL;
        free(bytes);
        tilus_diag_free(diag);
    }
    return cache;
}

static void threads_share_a_cache(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    void *ended;
    tilus_cache *cache = open_cache();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, jit_in_thread, cache), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &ended);
        assert_ptr_equal(ended, cache);
    }
    assert_true(hits_of(cache) >= 32);
    tilus_cache_close(cache);
}

/* Fails each allocation in turn; another try then succeeds. */
static void memory_may_run_out(void **state)
{
    (void)state;
    tilus_cache *cache = open_cache();
    const tilus_jit_options options = {.struct_size = sizeof options,
                                       .target = "sm_80", .cache = cache};
    tilus_status status = TILUS_ERROR_MEMORY;
    long failing = 0;
    for (; status != TILUS_OK; failing++) {
        tilus_diag *diag = tilus_diag_new();
        void *bytes;
        size_t size;
        allocations_left = failing;
        status = tilus_jit(diag, text, strlen(text), &options, &bytes, &size);
        allocations_left = -1;
        if (status != TILUS_OK)
            assert_int_equal(status, TILUS_ERROR_MEMORY);
        free(bytes);
        tilus_diag_free(diag);
    }
    assert_true(failing > 10);
    tilus_cache_close(cache);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(compiles_to_an_artefact),
        TEST(takes_the_target_of_a_device),
        TEST(chooses_the_program),
        TEST(says_where_the_text_is_wrong),
        TEST(compiles_once),
        TEST(everything_counts),
        TEST(limits_count),
        TEST(nothing_else_counts),
        TEST(imported_files_count),
        TEST(keeps_no_failures),
        TEST(threads_share_a_cache),
        TEST(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
