/* A server's attention on a cache of 4-bit codes: a prompt of two sequences goes through forward
 * attention and into the cache, then one new query of each is answered from the cache.
 *
 *     attention
 *
 * Both are compared with each other where they must agree: the last row of the prompt, and the
 * query that asks the same. Without a GPU all runs on the CPU engine. docs/attention.md explains
 * the calls. */
#include "tilus/attention.h"
#include "tilus/tilus.h"
#include "tilus/types.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 2, HEADS = 4, KV_HEADS = 2, TOKENS = 96, DIM = 128, PAGE = 32 };
enum { PAGES = BATCH * TOKENS / PAGE };

static tilus_rt *rt;
static tilus_attention *attention;

static void check(tilus_status status, const char *step)
{
    if (status == TILUS_OK)
        return;
    fprintf(stderr, "attention: error: %s: %s\n", step, tilus_rt_error());
    exit(1);
}

/* Opens the driver; where there is none, describes an H200 and runs its kernels on the CPU. */
static void open_libraries(void)
{
    char message[256];
    const tilus_rt_options software = {.struct_size = sizeof software,
                                       .devices = tilus_find_device("h200"), .device_count = 1,
                                       .engine = tilus_cpu_engine()};
    const tilus_attention_options options = {.struct_size = sizeof options,
                                             .compile = tilus_attention_compile};
    if (tilus_rt_open(NULL, &rt, message, sizeof message) != TILUS_OK) {
        printf("no GPU (%s): the CPU engine\n", message);
        check(tilus_rt_open(&software, &rt, message, sizeof message), message);
    }
    check(tilus_attention_open(rt, &options, &attention), "opening the library");
}

/* ---- tensors ------------------------------------------------------------------ */

static uint64_t reserve(size_t size)
{
    uint64_t address;
    check(tilus_rt_allocate(rt, 0, size, &address), "allocating");
    check(tilus_rt_fill(rt, 0, address, 0, size), "clearing");
    return address;
}

static uint64_t copy(const void *data, size_t size)
{
    uint64_t address = reserve(size);
    check(tilus_rt_upload(rt, 0, address, data, size), "copying");
    return address;
}

/* Returns random f16 numbers on the device, tokens first, and on the host. */
static uint64_t random_tensor(uint16_t *host, size_t count)
{
    for (size_t i = 0; i < count; i++)
        host[i] = (uint16_t)tilus_encode("f16", (double)rand() / RAND_MAX * 2 - 1);
    return copy(host, count * sizeof *host);
}

static uint16_t q[BATCH * TOKENS * HEADS * DIM], k[BATCH * TOKENS * KV_HEADS * DIM];
static uint16_t v[BATCH * TOKENS * KV_HEADS * DIM], o[BATCH * TOKENS * HEADS * DIM];
static uint16_t answer[BATCH * HEADS * DIM];

/* ---- the prompt --------------------------------------------------------------- */

/* Runs a call of a plan, with the workspace that it needs. */
static void run(tilus_attention_plan *plan, tilus_attention_call *call)
{
    char *text = tilus_attention_describe(plan, call->shape);
    printf("%s", text ? text : "out of memory\n");
    tilus_free(text);
    check(tilus_attention_workspace_size(plan, call->shape, &call->workspace_size), "the shape");
    call->workspace = reserve(call->workspace_size + 1);
    check(tilus_attention_prepare(plan, call->shape), "preparing");
    check(tilus_attention_run(plan, NULL, call), "running");
    check(tilus_rt_synchronize(rt, 0), "running");
    tilus_rt_release(rt, 0, call->workspace);
}

static void read_prompt(uint64_t dq, uint64_t dk, uint64_t dv)
{
    const tilus_attention_problem problem = {.struct_size = sizeof problem, .heads = HEADS,
                                             .kv_heads = KV_HEADS, .dim = DIM, .causal = true,
                                             .tokens_first = true};
    const tilus_attention_shape shape = {.struct_size = sizeof shape, .batch = BATCH,
                                         .queries = TOKENS, .tokens = TOKENS};
    tilus_attention_call call = {.struct_size = sizeof call, .shape = &shape, .q = dq, .k = dk,
                                 .v = dv, .o = reserve(sizeof o)};
    tilus_attention_plan *plan;
    check(tilus_attention_plan_create(attention, &problem, 0, &plan), "planning the prompt");
    run(plan, &call);
    check(tilus_rt_download(rt, 0, o, call.o, sizeof o), "copying");
    tilus_rt_release(rt, 0, call.o);
    tilus_attention_plan_free(plan);
}

/* ---- the cache ---------------------------------------------------------------- */

/* Answers the last query of each sequence from a cache of u4: 2 bytes of codes for 4 numbers of
 * k and v, and a scale and a zero point of each for a token and head. */
static void answer_from_cache(uint64_t dk, uint64_t dv)
{
    const tilus_attention_problem problem = {.struct_size = sizeof problem,
                                             .kind = TILUS_ATTENTION_DECODE, .heads = HEADS,
                                             .kv_heads = KV_HEADS, .dim = DIM, .page = PAGE,
                                             .cache = "u4", .finite = true};
    const tilus_attention_shape shape = {.struct_size = sizeof shape, .batch = BATCH,
                                         .tokens = TOKENS, .pages = PAGES,
                                         .columns = TOKENS / PAGE};
    const size_t rows = (size_t)PAGES * PAGE * KV_HEADS;
    int32_t table[PAGES], slots[BATCH * TOKENS], lengths[BATCH];
    static uint16_t last[BATCH * HEADS * DIM];
    for (int i = 0; i < PAGES; i++)
        table[i] = PAGES - 1 - i;
    for (int i = 0; i < BATCH * TOKENS; i++)
        slots[i] = table[i / PAGE] * PAGE + i % PAGE;
    for (int b = 0; b < BATCH; b++) {
        lengths[b] = TOKENS;
        for (int i = 0; i < HEADS * DIM; i++)
            last[b * HEADS * DIM + i] = q[((b + 1) * TOKENS - 1) * HEADS * DIM + i];
    }
    const tilus_attention_tokens tokens = {
        .struct_size = sizeof tokens, .tokens = BATCH * TOKENS, .pages = PAGES, .new_k = dk,
        .new_v = dv, .slots = copy(slots, sizeof slots), .k = reserve(rows * DIM / 2),
        .v = reserve(rows * DIM / 2), .scales = reserve(rows * 4 * sizeof(uint16_t))};
    tilus_attention_call call = {
        .struct_size = sizeof call, .shape = &shape, .q = copy(last, sizeof last), .k = tokens.k,
        .v = tokens.v, .scales = tokens.scales, .o = reserve(sizeof answer),
        .table = copy(table, sizeof table), .lengths = copy(lengths, sizeof lengths)};
    tilus_attention_plan *plan;
    check(tilus_attention_plan_create(attention, &problem, 0, &plan), "planning an answer");
    check(tilus_attention_append(plan, NULL, &tokens), "filling the cache");
    run(plan, &call);
    check(tilus_rt_download(rt, 0, answer, call.o, sizeof answer), "copying");
    tilus_attention_plan_free(plan);
    const uint64_t all[] = {tokens.slots, tokens.k, tokens.v, tokens.scales, call.q, call.o,
                            call.table, call.lengths};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tilus_rt_release(rt, 0, all[i]);
}

/* Returns the norm of the difference over that of the prompt's last rows. */
static double difference(void)
{
    double sum = 0, all = 0;
    for (int i = 0; i < BATCH * HEADS * DIM; i++) {
        int b = i / (HEADS * DIM), at = ((b + 1) * TOKENS - 1) * HEADS * DIM + i % (HEADS * DIM);
        double x = tilus_decode("f16", o[at]), y = tilus_decode("f16", answer[i]);
        sum += (x - y) * (x - y);
        all += x * x;
    }
    return sqrt(sum / all);
}

int main(void)
{
    open_libraries();
    uint64_t dq = random_tensor(q, sizeof q / sizeof *q);
    uint64_t dk = random_tensor(k, sizeof k / sizeof *k);
    uint64_t dv = random_tensor(v, sizeof v / sizeof *v);
    read_prompt(dq, dk, dv);
    answer_from_cache(dk, dv);
    tilus_rt_release(rt, 0, dq);
    tilus_rt_release(rt, 0, dk);
    tilus_rt_release(rt, 0, dv);
    tilus_attention_close(attention);
    tilus_rt_close(rt);
    double error = difference();
    printf("answers from u4 differ from the prompt's last rows by %.3f of the norm\n", error);
    return error < 0.2 ? 0 : 1;
}
