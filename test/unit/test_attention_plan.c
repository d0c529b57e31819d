/* Plans of attention: tiles and shared memory, what a shape makes of splits, schedules, kernels and
 * workspaces. Nothing is launched, and kernels are lowered for their shared memory alone. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "attention/internal.h"
#include "library_fixture.h"

/* A plan on the software device of `rt`, and its library. */
typedef struct Session {
    tilus_attention *attention;
    tilus_attention_plan *plan;
} Session;

static Session open_session(const char *device, tilus_attention_problem problem)
{
    Session s;
    problem.struct_size = sizeof problem;
    open_rt_of(device);
    assert_ok(tilus_attention_open(rt, NULL, &s.attention));
    assert_ok(tilus_attention_plan_create(s.attention, &problem, 0, &s.plan));
    return s;
}

static void close_session(Session *s)
{
    tilus_attention_plan_free(s->plan);
    tilus_attention_close(s->attention);
    tilus_rt_close(rt);
}

/* Codes fill four tiles, of 128 tokens where sums and shared memory leave room for these. */
static void decodes_by_tiles_with_room(void **state)
{
    (void)state;
    const tilus_attention_kind decode = TILUS_ATTENTION_DECODE;
    const struct {
        const char *device;
        tilus_attention_problem problem;
        int tile, blocks, resident;
    } cases[] = {
        {"h200", {.kind = decode, .heads = 8}, 64, 2, 2},
        {"h200", {.kind = decode, .heads = 8, .dim = 256}, 64, 1, 1},
        {"h200", {.kind = decode, .heads = 8, .cache = "u4"}, 128, 2, 2},
        {"h200", {.kind = decode, .heads = 8, .cache = "u8"}, 128, 2, 1},
        {"h200", {.kind = decode, .heads = 8, .cache = "u8", .dim = 256}, 64, 1, 1},
        {"h200", {.kind = decode, .heads = 16, .kv_heads = 1, .cache = "u4"}, 128, 2, 2},
        {"h200", {.kind = decode, .heads = 32, .kv_heads = 1, .cache = "u4"}, 64, 1, 1},
        {"a100", {.kind = decode, .heads = 8, .cache = "u8"}, 128, 2, 1},
        {"a10", {.kind = decode, .heads = 8, .cache = "u8"}, 64, 2, 1}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        Session s = open_session(cases[i].device, cases[i].problem);
        if (s.plan->tile != cases[i].tile || s.plan->blocks != cases[i].blocks ||
            s.plan->resident != cases[i].resident)
            fail_msg("case %zu: tile %d, blocks %d, resident %d", i, s.plan->tile, s.plan->blocks,
                     s.plan->resident);
        close_session(&s);
    }
}

/* A warp copies pages with the tokens behind a sequence's end, which must be finite, and fit a
 * tile. */
static void copies_whole_pages_of_finite_codes(void **state)
{
    (void)state;
    const tilus_attention_problem p = {.kind = TILUS_ATTENTION_DECODE, .heads = 8, .cache = "u4",
                                       .finite = true};
    tilus_attention_problem cases[] = {p, p, p, p, p, p, p};
    cases[1].page = 8;
    cases[2].page = 128;
    cases[3].page = 4;
    cases[4].page = 256;
    cases[5].finite = false;
    cases[6].tokens_first = true;
    for (size_t i = 0; i < COUNT(cases); i++) {
        Session s = open_session("h200", cases[i]);
        if (s.plan->bulk != (i < 3))
            fail_msg("case %zu: %scopied by pages", i, s.plan->bulk ? "" : "not ");
        close_session(&s);
    }
}

/* Returns the shared memory of the kernel, of which no code is made. */
static size_t shared_bytes(const Kernel *kernel)
{
    tilus_define defines[DEFINES_MAX];
    size_t length;
    const char *text = tilus_template_text(template_of("attention", kernel->program), &length);
    char *words = strdup(kernel->parameters);
    tilus_diag *diag = tilus_diag_new();
    const tilus_pass_options passes = {.struct_size = sizeof passes, .target = kernel->target};
    tilus_module *m = tilus_parse(diag, kernel->name, text, length, 1, defines,
                                  (size_t)defines_split(words, defines));
    if (!m || !tilus_run_passes(m, NULL, &passes))
        fail_msg("%s: %s", kernel->name, tilus_diag_text(diag, 0));
    size_t bytes = tilus_module_kernel_info(m, kernel->program)->shared_bytes;
    tilus_module_free(m);
    tilus_diag_free(diag);
    free(words);
    return bytes;
}

/* Compares the plan's shared memory with its kernel's, if there is a plan; the status of that. */
static tilus_status check_room_of(tilus_attention *attention,
                                  const tilus_attention_problem *problem)
{
    tilus_attention_plan *plan;
    tilus_status status = tilus_attention_plan_create(attention, problem, 0, &plan);
    if (status != TILUS_OK)
        return status;
    const Kernel *kernel = plan->kernels[ATTENTION_K_ATTEND];
    size_t needed = shared_bytes(kernel);
    if (needed != (size_t)plan->shared || needed > (size_t)tilus_rt_shared_memory(rt, 0))
        fail_msg("%s: a block needs %zu bytes of shared memory, the plan has %lld of %zu",
                 kernel->name, needed, (long long)plan->shared,
                 (size_t)tilus_rt_shared_memory(rt, 0));
    tilus_attention_plan_free(plan);
    return TILUS_OK;
}

/* Returns one of the problems of decoding, whose fields are digits of `number`. */
static tilus_attention_problem decode_problem(unsigned number)
{
    static const char *const caches[] = {"f16", "u2", "u3", "u4", "u6", "u8", "f4e2m1", "f6e3m2",
                                         "f8e4m3"};
    static const int heads[] = {1, 8, 9, 16, 32, 48, 64}, pages[] = {1, 16, 64, 256};
    unsigned dim = number % 3, cache = number / 3 % 9, head = number / 27 % 7;
    unsigned page = number / 189 % 4, groups = number / 756 % 4, form = number / 3024 % 4;
    return (tilus_attention_problem){
        .struct_size = sizeof(tilus_attention_problem), .kind = TILUS_ATTENTION_DECODE,
        .heads = heads[head], .kv_heads = 1, .dim = 64 << dim, .cache = caches[cache],
        .page = pages[page], .groups = cache ? 1 << groups : 1, .finite = form < 3,
        .tokens_first = form == 2};
}

/* Problems by steps through all of them; some have more groups than their columns, which is refused,
 * some need more shared memory than the device has. */
static void decodes_in_shared_memory(void **state)
{
    (void)state;
    enum { PROBLEMS = 12096, STEP = 331 };
    static const char *const devices[] = {"h200", "a100", "a10"};
    static const unsigned of_whole_pages[] = {2 + 3 * 4 + 27 + 189, 2 + 3 * 7 + 27 + 189};
    int planned = 0, refused = 0;
    for (int d = 0; d < 3; d++) {
        tilus_attention *attention;
        open_rt_of(devices[d]);
        assert_ok(tilus_attention_open(rt, NULL, &attention));
        for (unsigned i = (unsigned)d; i < PROBLEMS; i += STEP) {
            const tilus_attention_problem problem = decode_problem(i);
            tilus_status status = check_room_of(attention, &problem);
            planned += status == TILUS_OK;
            refused += status == TILUS_ERROR_UNSUPPORTED;
        }
        for (size_t i = 0; d == 0 && i < COUNT(of_whole_pages); i++) {
            const tilus_attention_problem problem = decode_problem(of_whole_pages[i]);
            assert_ok(check_room_of(attention, &problem));
        }
        tilus_attention_close(attention);
        tilus_rt_close(rt);
    }
    assert_true(planned >= 50 && refused >= 3);
}

static void forward_tiles_have_room(void **state)
{
    (void)state;
    const struct {
        tilus_attention_problem problem;
        int tile;
    } cases[] = {{{.heads = 1}, 128}, {{.heads = 1, .dim = 192, .value_dim = 128}, 128},
                 {{.heads = 1, .dim = 192}, 96}, {{.heads = 1, .dim = 256}, 64},
                 {{.heads = 1, .mask = TILUS_ATTENTION_BOOLEAN}, 64},
                 {{.heads = 1, .type = "f8e4m3", .dim = 256}, 128},
                 {{.heads = 1, .type = "f8e4m3", .mask = TILUS_ATTENTION_ADDED}, 64}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        Session s = open_session("h200", cases[i].problem);
        if (s.plan->tile != cases[i].tile)
            fail_msg("case %zu: tile %d", i, s.plan->tile);
        close_session(&s);
    }
}

/* Three warpgroups begin and end with more rows, so that only many tiles gain from them. */
static void eight_bits_choose_warpgroups(void **state)
{
    (void)state;
    const struct {
        tilus_attention_problem problem;
        int64_t tokens;
        const char *tile;
    } cases[] = {{{.heads = 32}, 4096, "128 x 128"}, {{.heads = 32}, 8192, "192 x 96"},
                 {{.heads = 32}, 16384, "192 x 96"}, {{.heads = 32, .dim = 64}, 8192, "192 x 128"},
                 {{.heads = 32, .dim = 64}, 512, "128 x 128"},
                 {{.heads = 67, .kv_heads = 1, .dim = 64}, 130, "192 x 128"},
                 {{.heads = 32, .dim = 256}, 8192, "128 x 128"},
                 {{.heads = 32, .causal = true}, 8192, "128 x 128"},
                 {{.heads = 32, .lse = true}, 8192, "128 x 128"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        tilus_attention_problem problem = cases[i].problem;
        problem.type = "f8e4m3";
        Session s = open_session("h200", problem);
        const tilus_attention_shape shape = {sizeof shape, .batch = 1, .queries = cases[i].tokens,
                                             .tokens = cases[i].tokens};
        char *text = tilus_attention_describe(s.plan, &shape);
        char *kernels = tilus_attention_kernels(s.plan, &shape);
        const bool wide = !strncmp(cases[i].tile, "192", 3);
        if (!strstr(text, cases[i].tile) || !strstr(kernels, "WARPGROUPS=3") != !wide)
            fail_msg("case %zu: %s%s", i, text, kernels);
        tilus_free(text);
        tilus_free(kernels);
        close_session(&s);
    }
}

/* Sequences of v begin with a tile each. */
static void workspaces_hold_v_of_eight_bits(void **state)
{
    (void)state;
    const struct {
        tilus_attention_problem problem;
        tilus_attention_shape shape;
        int64_t tiles;
    } cases[] = {
        {{.heads = 4, .kv_heads = 2, .type = "f8e4m3"},
         {.batch = 3, .queries = 9, .tokens = 1000}, 2 * 3 * 8},
        {{.heads = 4, .kv_heads = 2, .type = "f8e4m3", .ragged = true},
         {.batch = 3, .queries = 9, .tokens = 1000, .longest = 9}, 2 * (1000 / 128 + 3)}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        Session s = open_session("h200", cases[i].problem);
        tilus_attention_shape shape = cases[i].shape;
        size_t size;
        shape.struct_size = sizeof shape;
        assert_int_equal(s.plan->tile, 128);
        assert_ok(tilus_attention_workspace_size(s.plan, &shape, &size));
        assert_int_equal(size, cases[i].tiles * 128 * 128);
        close_session(&s);
    }
}

static tilus_attention_shape decode_shape(int64_t splits)
{
    return (tilus_attention_shape){.struct_size = sizeof(tilus_attention_shape), .batch = 1,
                                   .tokens = 4096, .pages = 64, .columns = 64, .splits = splits};
}

/* Sums of `splits` parts of each row of o: f32 in columns of o, and one more. */
static void workspaces_hold_parts_of_o(void **state)
{
    (void)state;
    const struct {
        tilus_attention_problem problem;
        size_t bytes;
    } cases[] = {
        {{.kind = TILUS_ATTENTION_DECODE, .heads = 4, .dim = 64}, 4 * 3 * 64 * 4 + 256},
        {{.kind = TILUS_ATTENTION_LATENT, .heads = 1, .finite = true}, 3 * 512 * 4 + 256}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        Session s = open_session("h200", cases[i].problem);
        const tilus_attention_shape one = decode_shape(1), three = decode_shape(3);
        size_t size;
        assert_ok(tilus_attention_workspace_size(s.plan, &one, &size));
        assert_int_equal(size, 0);
        assert_ok(tilus_attention_workspace_size(s.plan, &three, &size));
        assert_int_equal(size, cases[i].bytes);
        close_session(&s);
    }
}

/* Returns true when the text of the plan's kernels for the shape has `part`. */
static bool has_kernel(const Session *s, const tilus_attention_shape *shape, const char *part)
{
    char *text = tilus_attention_kernels(s->plan, shape);
    assert_non_null(text);
    bool found = strstr(text, part) != NULL;
    tilus_free(text);
    return found;
}

static void few_splits_take_few_registers(void **state)
{
    (void)state;
    Session s = open_session("h200", (tilus_attention_problem){.kind = TILUS_ATTENTION_DECODE,
                                                               .heads = 4});
    const struct {
        int splits;
        const char *combined;
    } cases[] = {
        {8, "COMBINED=8\n"}, {9, "COMBINED=32\n"}, {32, "COMBINED=32\n"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const tilus_attention_shape shape = decode_shape(cases[i].splits);
        assert_true(has_kernel(&s, &shape, cases[i].combined));
    }
    const tilus_attention_shape more = decode_shape(33);
    assert_true(has_kernel(&s, &more, "combine-"));
    assert_false(has_kernel(&s, &more, "COMBINED"));
    close_session(&s);
}

static void one_split_is_not_combined(void **state)
{
    (void)state;
    Session s = open_session("h200", (tilus_attention_problem){.kind = TILUS_ATTENTION_DECODE,
                                                               .heads = 4});
    const tilus_attention_shape one = decode_shape(1), two = decode_shape(2);
    assert_true(has_kernel(&s, &one, "attend-") && has_kernel(&s, &two, "attend-"));
    assert_false(has_kernel(&s, &one, "combine-"));
    assert_true(has_kernel(&s, &two, "combine-"));
    close_session(&s);
}

/* The description of a call that asks for a choice has it. */
static void expect_choice(const Session *s, const tilus_attention_shape *shape, const char *part)
{
    char *text = tilus_attention_describe(s->plan, shape);
    assert_non_null(text);
    if (!strstr(text, part))
        fail_msg("no \"%s\" in:\n%s", part, text);
    tilus_free(text);
}

static void takes_the_choices_of_a_call(void **state)
{
    (void)state;
    static const char *const schedules[] = {"schedule queues", "schedule blocks",
                                            "schedule folded"};
    tilus_attention_shape shape = decode_shape(7);
    Session s = open_session("h200", (tilus_attention_problem){.kind = TILUS_ATTENTION_DECODE,
                                                               .heads = 4});
    expect_choice(&s, &shape, "\n7 splits, ");
    close_session(&s);
    s = open_session("h200", (tilus_attention_problem){.heads = 32, .causal = true});
    shape = (tilus_attention_shape){.struct_size = sizeof shape, .batch = 1, .queries = 1024,
                                    .tokens = 1024};
    for (int i = 0; i < 3; i++) {
        shape.schedule = (tilus_attention_schedule)(TILUS_ATTENTION_QUEUES + i);
        expect_choice(&s, &shape, schedules[i]);
    }
    close_session(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_by_tiles_with_room),
        cmocka_unit_test(copies_whole_pages_of_finite_codes),
        cmocka_unit_test(decodes_in_shared_memory),
        cmocka_unit_test(forward_tiles_have_room),
        cmocka_unit_test(workspaces_hold_parts_of_o),
        cmocka_unit_test(eight_bits_choose_warpgroups),
        cmocka_unit_test(workspaces_hold_v_of_eight_bits),
        cmocka_unit_test(few_splits_take_few_registers),
        cmocka_unit_test(one_split_is_not_combined),
        cmocka_unit_test(takes_the_choices_of_a_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
