/* Compiling to an artefact: what is in it, and every way in which there is none.
 * Linked with --wrap for malloc, calloc and strdup. */
#include "failing_memory.h"
#include "support/limits.h"
#include "tilus/artefact.h"
#include "tilus/tilus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- modules ---------------------------------------------------------- */

static const char one_program[] =
    "tilus 1\n"
    "// caf\xc3\xa9\n"
    "program @fill<ceil_div(%n, 128)>(%a: ptr<f32> {align = 16},\n"
    "    %n: i32 {divisible = 128, range = [0, 4096]}) warps(4) {\n"
    "  %b = block_indices\n"
    "  %g = view_global %a : f32[%n]\n"
    "  %w = allocate_global : f32[%n]\n"
    "  %x = allocate_register 1.0 : f32[128] @ spatial(128)\n"
    "  store_global %x, %w[%b * 128]\n"
    "  store_global %x, %g[%b * 128]\n"
    "}\n";
static const char two_programs[] =
    "tilus 1\nprogram @one<1>() warps(1) {\n}\nprogram @two<2>() warps(1) {\n}\n";

typedef struct Subject {
    tilus_diag *diag;
    tilus_module *module;
} Subject;

static Subject subject_of(const char *text)
{
    Subject s = {.diag = tilus_diag_new()};
    const tilus_pass_options passes = {.struct_size = sizeof passes,
                                       .verify_each = true, .target = "sm_90a"};
    s.module = tilus_parse(s.diag, "test.tilus", text, strlen(text), 1, NULL, 0);
    assert_non_null(s.module);
    assert_true(tilus_run_passes(s.module, NULL, &passes));
    return s;
}

static void subject_free(Subject *s)
{
    tilus_module_free(s->module);
    tilus_diag_free(s->diag);
}

/* Results of one compile. */
typedef struct Result {
    tilus_status status;
    void *bytes;
    size_t size;
} Result;

static Result compile(const Subject *s, const char *program, const char *cpu,
                      const tilus_artefact_options *extra)
{
    const tilus_compile_options options = {.struct_size = sizeof options,
                                        .cpu = cpu, .program = program,
                                           .output = TILUS_OUTPUT_LLVM_IR};
    Result r = {.bytes = &r, .size = 1};
    r.status = tilus_compile_artefact(s->module, &options, extra, NULL, &r.bytes, &r.size);
    if (r.status != TILUS_OK) {
        assert_null(r.bytes);
        assert_int_equal(r.size, 0);
    }
    return r;
}

static void expect_failure(Result r, tilus_status status)
{
    assert_int_equal(r.status, status);
}

/* The artefact of a compile that has succeeded; the caller frees it. */
static tilus_artefact *expect_artefact(Result r)
{
    tilus_artefact *a;
    char message[256];
    assert_int_equal(r.status, TILUS_OK);
    if (tilus_artefact_read(r.bytes, r.size, &a, message, sizeof message) != TILUS_OK)
        fail_msg("refused: %s", message);
    free(r.bytes);
    return a;
}

/* ---- an assembler ----------------------------------------------------- */

typedef struct Assembler {
    const char *cubin;          /* what it makes, or NULL */
    size_t size;                /* what it says of that */
    char cpu[16];
    bool saw_ptx;
} Assembler;

static void *make_cubin(void *data, const char *cpu, const char *ptx, size_t *size)
{
    Assembler *a = data;
    char *copy = a->cubin ? malloc(strlen(a->cubin) + 1) : NULL;
    strncpy(a->cpu, cpu, sizeof a->cpu - 1);
    a->saw_ptx = strstr(ptx, ".entry ");
    *size = a->size;
    return copy ? strcpy(copy, a->cubin) : NULL;
}

/* ---- what is in it ---------------------------------------------------- */

static void an_artefact_has_all_of_a_compile(void **state)
{
    (void)state;
    Subject s = subject_of(one_program);
    Assembler assembler = {.cubin = "\x7f""ELF code", .size = 9};
    const tilus_artefact_options extra = {.struct_size = sizeof extra,
                                        "W=u4 BK=64", make_cubin, &assembler};
    tilus_artefact *a = expect_artefact(compile(&s, "fill", "sm_90a", &extra));
    const tilus_compile_options options = {.struct_size = sizeof options, .cpu = "sm_90a"};
    char *ptx = tilus_compile(s.module, &options, NULL), version[32];
    assert_string_equal(a->ptx, ptx);
    snprintf(version, sizeof version, "\n.version %u.%u", a->ptx_version / 10,
             a->ptx_version % 10);
    assert_non_null(strstr(ptx, version));
    assert_string_equal(a->info->name, "fill");
    assert_int_equal(a->info->arg_count, 2);
    assert_int_equal(a->info->args[1].divisible, 128);
    assert_int_equal(a->info->threads, 128);
    assert_int_equal(a->info->workspace_count, 1);
    assert_string_equal(a->target, "sm_90a");
    assert_string_equal(a->source, one_program);
    assert_string_equal(a->parameters, "W=u4 BK=64");
    assert_memory_equal(a->compiler, "tilus 0.", 8);
    assert_int_equal(a->cubin_size, 9);
    assert_memory_equal(a->cubin, "\x7f""ELF code", 9);
    assert_string_equal(assembler.cpu, "sm_90a");
    assert_true(assembler.saw_ptx);
    free(ptx);
    free(a);
    subject_free(&s);
}

static void equal_compiles_give_equal_bytes(void **state)
{
    (void)state;
    Subject s = subject_of(one_program), t = subject_of(one_program);
    Result a = compile(&s, NULL, "sm_80", NULL), b = compile(&t, "fill", "sm_80", NULL);
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.bytes, b.bytes, a.size);
    free(a.bytes);
    free(b.bytes);
    subject_free(&s);
    subject_free(&t);
}

/* A sum as deep as the language lets it be. */
static void the_deepest_grid_fits(void **state)
{
    (void)state;
    char text[2048] = "tilus 1\nprogram @f<%n";
    for (int depth = 1; depth < LIMIT_DEPTH; depth++)
        strcat(text, " + %n");
    strcat(text, ">(%n: i32) warps(1) {\n}\n");
    Subject s = subject_of(text);
    tilus_artefact *a = expect_artefact(compile(&s, NULL, "sm_80", NULL));
    assert_int_equal(a->info->grid_length[0], 2 * LIMIT_DEPTH - 1);
    free(a);
    subject_free(&s);
}

/* ---- when there is none ----------------------------------------------- */

static void a_program_must_be_meant(void **state)
{
    (void)state;
    Subject s = subject_of(two_programs);
    expect_failure(compile(&s, NULL, "sm_80", NULL), TILUS_ERROR_PROGRAM);
    assert_string_equal(tilus_diag_text(s.diag, 0), "2 programs, an artefact has one");
    expect_failure(compile(&s, "three", "sm_80", NULL), TILUS_ERROR_PROGRAM);
    assert_non_null(strstr(tilus_diag_text(s.diag, 1), "@three"));
    tilus_artefact *a = expect_artefact(compile(&s, "two", "sm_80", NULL));
    assert_string_equal(a->info->name, "two");
    assert_null(strstr(a->ptx, ".entry one"));
    free(a);
    subject_free(&s);
}

static void failures_are_told_apart(void **state)
{
    (void)state;
    Subject s = subject_of(one_program);
    Assembler assembler = {0};
    tilus_artefact_options extra = {.struct_size = sizeof extra, NULL, make_cubin, &assembler};
    expect_failure(compile(&s, NULL, "sm_80", &extra), TILUS_ERROR_UNSUPPORTED);
    assembler = (Assembler){.cubin = "", .size = (size_t)TILUS_ARTEFACT_MAX + 1};
    expect_failure(compile(&s, NULL, "sm_80", &extra), TILUS_ERROR_ARGUMENT);
    extra = (tilus_artefact_options){.struct_size = sizeof(tilus_artefact_options),
                                     .parameters = "W=\xff"};
    expect_failure(compile(&s, NULL, "sm_80", &extra), TILUS_ERROR_ARGUMENT);
    assert_int_equal(tilus_diag_errors(s.diag), 0);
    expect_failure(compile(&s, NULL, "sm_12", NULL), TILUS_ERROR_PROGRAM);
    assert_int_equal(tilus_diag_errors(s.diag), 1);
    subject_free(&s);
}

/* Fails at each of its allocations, and leaves the module fit for another try. */
static void memory_may_run_out_anywhere(void **state)
{
    (void)state;
    long count = 0;
    Subject s;
    Result r = {.status = TILUS_ERROR_MEMORY};
    for (; r.status != TILUS_OK; count++) {
        s = subject_of(one_program);
        Assembler assembler = {.cubin = "code", .size = 5};
        const tilus_artefact_options extra = {.struct_size = sizeof extra,
                                        NULL, make_cubin, &assembler};
        allocations_left = count;
        r = compile(&s, NULL, "sm_80", &extra);
        allocations_left = -1;
        if (r.status == TILUS_OK)
            free(r.bytes);
        else
            assert_true(r.status == TILUS_ERROR_MEMORY || r.status == TILUS_ERROR_UNSUPPORTED);
        free(expect_artefact(compile(&s, NULL, "sm_80", &extra)));
        subject_free(&s);
    }
    assert_in_range(count, 4, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_artefact_has_all_of_a_compile),
        cmocka_unit_test(equal_compiles_give_equal_bytes),
        cmocka_unit_test(the_deepest_grid_fits),
        cmocka_unit_test(a_program_must_be_meant),
        cmocka_unit_test(failures_are_told_apart),
        cmocka_unit_test(memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests_name("compile_artefact", tests, NULL, NULL);
}
