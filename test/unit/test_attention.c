/* Attention on a software device with the CPU engine, by public calls alone, against sums in
 * double; what plans choose, and what the library refuses. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "library_fixture.h"

#include "attention/internal.h"
#include "tilus/types.h"

enum { SEQUENCES_MAX = 4 };

static tilus_attention *attention;

static int set_up(void **state)
{
    (void)state;
    const tilus_attention_options options = {.struct_size = sizeof options,
                                             .compile = compile_plainly,
                                             .compile_data = "attention"};
    open_rt();
    assert_ok(tilus_attention_open(rt, &options, &attention));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tilus_attention_close(attention);
    tilus_rt_close(rt);
    return 0;
}

static tilus_attention_plan *plan_of(const tilus_attention_problem *problem)
{
    tilus_attention_problem p = *problem;
    tilus_attention_plan *plan;
    p.struct_size = sizeof p;
    assert_ok(tilus_attention_plan_create(attention, &p, 0, &plan));
    return plan;
}

/* ---- tensors ------------------------------------------------------------ */

/* Numbers, on the host as doubles and on the device as `type`. */
typedef struct Tensor {
    const char *type;
    size_t count, size;
    double *values;
    unsigned char *bytes;
    uint64_t address;
} Tensor;

static uint32_t seed = 1;

/* Returns a number from -1 to 1. */
static double draw(void)
{
    seed = seed * 1664525 + 1013904223;
    return (double)(seed >> 8) / (1 << 23) - 1;
}

static Tensor tensor(const char *type, int64_t count)
{
    Tensor t = {.type = type, .count = (size_t)count};
    t.size = tilus_packed_bytes(type, t.count);
    t.values = calloc(t.count, sizeof *t.values);
    t.bytes = calloc(1, t.size + 16);
    assert_true(t.values && t.bytes);
    assert_ok(tilus_rt_allocate(rt, 0, t.size + 16, &t.address));
    return t;
}

static void upload(Tensor *t)
{
    unsigned bits = tilus_type_bits(t->type);
    for (size_t i = 0; i < t->count; i++) {
        uint64_t code = tilus_encode(t->type, t->values[i]);
        tilus_set_bits(t->bytes, i, bits, code);
        t->values[i] = tilus_decode(t->type, code);
    }
    assert_ok(tilus_rt_upload(rt, 0, t->address, t->bytes, t->size));
}

static void download(Tensor *t)
{
    unsigned bits = tilus_type_bits(t->type);
    assert_ok(tilus_rt_download(rt, 0, t->bytes, t->address, t->size));
    for (size_t i = 0; i < t->count; i++)
        t->values[i] = tilus_decode(t->type, tilus_get_bits(t->bytes, i, bits));
}

static Tensor random_tensor(const char *type, int64_t count)
{
    Tensor t = tensor(type, count);
    for (size_t i = 0; i < t.count; i++)
        t.values[i] = draw() * 2;
    upload(&t);
    return t;
}

/* Makes a tensor that a kernel writes: of NaN, where its type has it. */
static Tensor result_tensor(const char *type, int64_t count)
{
    Tensor t = tensor(type, count);
    assert_ok(tilus_rt_fill(rt, 0, t.address, 0xff, t.size));
    return t;
}

static Tensor integers(const int32_t *values, size_t count)
{
    Tensor t = tensor("i32", (int64_t)count);
    for (size_t i = 0; i < count; i++)
        t.values[i] = values[i];
    upload(&t);
    return t;
}

static void drop(Tensor *t)
{
    if (t->address)
        tilus_rt_release(rt, 0, t->address);
    free(t->values);
    free(t->bytes);
}

/* Compares with what was expected, -inf and 0 exactly; where NaN was, any number will do. */
static void assert_near(const char *what, const double *found, const double *expected,
                        size_t count, double tolerance)
{
    for (size_t i = 0; i < count; i++) {
        bool near = isinf(expected[i]) ? found[i] == expected[i]
                                       : fabs(found[i] - expected[i]) <= tolerance;
        if (!near && !isnan(expected[i]))
            fail_msg("%s[%zu] is %g, not %g", what, i, found[i], expected[i]);
    }
}

/* ---- a reference -------------------------------------------------------- */

/* Writes a row of o and returns its logarithm: scores of `count` columns, -inf for those that are
 * not seen, and a sink, or -inf. Value j begins at values[j * stride]. */
static double row_of(const double *scores, int64_t count, double sink, const double *values,
                     int64_t stride, int64_t columns, double *o)
{
    double top = sink, total = 0;
    for (int64_t j = 0; j < count; j++)
        top = scores[j] > top ? scores[j] : top;
    memset(o, 0, (size_t)columns * sizeof *o);
    if (isinf(top))
        return -INFINITY;
    for (int64_t j = 0; j < count; j++) {
        double weight = exp(scores[j] - top);
        total += weight;
        for (int64_t c = 0; c < columns; c++)
            o[c] += weight * values[j * stride + c];
    }
    total += exp(sink - top);
    for (int64_t c = 0; c < columns; c++)
        o[c] /= total;
    return top + log(total);
}

static double product(const double *x, const double *y, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += x[i] * y[i];
    return sum;
}

/* ---- forward ------------------------------------------------------------ */

typedef struct Forward {
    tilus_attention_problem problem;
    int64_t batch;              /* ragged: sequences */
    int32_t queries[SEQUENCES_MAX], tokens[SEQUENCES_MAX];      /* not ragged: the first ones */
    int64_t masks;
    tilus_attention_schedule schedule;
    bool no_sink;               /* sinks are -inf */
    bool poisoned[SEQUENCES_MAX];   /* ragged: rows of this sequence are Inf and NaN */
    int64_t longest;            /* ragged: a bound; 0: the longest sequence's rows */
} Forward;

/* A problem's tensors. */
typedef struct ForwardTensors {
    Tensor q, k, v, o, lse, sinks, mask, q_starts, k_starts, scales;
    int64_t n, nk;
} ForwardTensors;

static void fill_mask(const Forward *f, ForwardTensors *t)
{
    const char *types[] = {NULL, t->o.type, "u8"};
    if (!f->problem.mask)
        return;
    t->mask = random_tensor(types[f->problem.mask], f->masks * t->n * t->nk);
    for (size_t i = 0; f->problem.mask == TILUS_ATTENTION_BOOLEAN && i < t->mask.count; i++)
        t->mask.values[i] = draw() > -0.3 ? 1 : 0;
    upload(&t->mask);
}

/* Makes the rows of poisoned sequences, of `columns` numbers, x and NaN by turns. */
static void spoil(const Forward *f, double *values, const Tensor *starts, int64_t columns, double x)
{
    for (int64_t b = 0; b < f->batch && starts->count; b++)
        for (int64_t i = (int64_t)starts->values[b] * columns;
             f->poisoned[b] && i < (int64_t)starts->values[b + 1] * columns; i++)
            values[i] = i % 2 ? NAN : x;
}

static void poison(const Forward *f, Tensor *t, const Tensor *starts, int64_t columns)
{
    spoil(f, t->values, starts, columns, INFINITY);
    upload(t);
}

static void poison_inputs(const Forward *f, const tilus_attention_problem *p, ForwardTensors *t)
{
    poison(f, &t->q, &t->q_starts, p->heads * p->dim);
    poison(f, &t->k, &t->k_starts, p->kv_heads * p->dim);
    poison(f, &t->v, &t->k_starts, p->kv_heads * p->value_dim);
}

static bool is_eight(const tilus_attention_problem *p)
{
    return !strcmp(p->type, "f8e4m3");
}

/* Returns scales of q, k and v of each of count / 3 heads. */
static Tensor random_scales(int64_t count)
{
    Tensor t = tensor("f32", count);
    for (size_t i = 0; i < t.count; i++)
        t.values[i] = 1.25 + draw() / 2;
    if (count > 3)
        t.values[2 * count / 3 - 1] = 0;    /* of k, as of a head of zeros */
    upload(&t);
    return t;
}

/* Returns the scale of a head of k: 0 of q, 1 of k, 2 of v. */
static double scale_of(const ForwardTensors *t, int which, int64_t kv)
{
    size_t heads = t->scales.count / 3;
    return heads ? t->scales.values[(size_t)which * heads + (size_t)kv] : 1;
}

static ForwardTensors forward_tensors(const Forward *f, const tilus_attention_problem *p)
{
    ForwardTensors t = {.n = f->queries[0], .nk = f->tokens[0]};
    int32_t starts[2][SEQUENCES_MAX + 1] = {{0}};
    for (int64_t b = 0; b < f->batch && p->ragged; b++) {
        starts[0][b + 1] = starts[0][b] + f->queries[b];
        starts[1][b + 1] = starts[1][b] + f->tokens[b];
        t.n = starts[0][b + 1];
        t.nk = starts[1][b + 1];
    }
    int64_t batch = p->ragged ? 1 : f->batch;
    t.q = random_tensor(p->type, batch * t.n * p->heads * p->dim);
    t.k = random_tensor(p->type, batch * t.nk * p->kv_heads * p->dim);
    t.v = random_tensor(p->type, batch * t.nk * p->kv_heads * p->value_dim);
    t.o = result_tensor(p->out_type, batch * t.n * p->heads * p->value_dim);
    if (is_eight(p))
        t.scales = random_scales(3 * p->kv_heads);
    if (p->lse)
        t.lse = result_tensor("f32", batch * t.n * p->heads);
    if (p->sinks)
        t.sinks = random_tensor("f32", p->heads);
    for (size_t h = 0; h < t.sinks.count && f->no_sink; h++)
        t.sinks.values[h] = -INFINITY;
    if (f->no_sink)
        upload(&t.sinks);
    if (p->ragged) {
        t.q_starts = integers(starts[0], (size_t)f->batch + 1);
        t.k_starts = integers(starts[1], (size_t)f->batch + 1);
    }
    fill_mask(f, &t);
    poison_inputs(f, p, &t);
    return t;
}

static void drop_forward(ForwardTensors *t)
{
    Tensor *all[] = {&t->q, &t->k, &t->v, &t->o, &t->lse, &t->sinks, &t->mask, &t->q_starts,
                     &t->k_starts, &t->scales};
    for (size_t i = 0; i < COUNT(all); i++)
        drop(all[i]);
}

/* Returns the score of row i and column j of a sequence, from their product. */
static double score(const Forward *f, const tilus_attention_problem *p, const ForwardTensors *t,
                    int64_t b, int64_t h, int64_t i, int64_t j, double s)
{
    int64_t shift = f->tokens[p->ragged ? b : 0] - f->queries[p->ragged ? b : 0];
    if (p->causal && j > i + shift)
        return -INFINITY;
    if (p->window && (j < i + shift - p->left || (!p->causal && j > i + shift + p->right)))
        return -INFINITY;
    s *= p->scale;
    s = p->cap > 0 ? p->cap * tanh(s / p->cap) : s;
    if (!p->mask)
        return s;
    double m = t->mask.values[((b * p->heads + h) % f->masks * t->n + i) * t->nk + j];
    return p->mask == TILUS_ATTENTION_ADDED ? s + m : m > 0 ? s : -INFINITY;
}

/* Returns where a row of a head begins, of tensors of `rows` rows of a sequence. */
static int64_t place(const tilus_attention_problem *p, int64_t b, int64_t h, int64_t i,
                     int64_t heads, int64_t rows, int64_t columns)
{
    return (p->tokens_first ? (b * rows + i) * heads + h : (b * heads + h) * rows + i) * columns;
}

/* Compares a head of a sequence, whose rows begin at q_first and k_first. */
static void check_head(const Forward *f, const tilus_attention_problem *p,
                       const ForwardTensors *t, int64_t b, int64_t h, int64_t q_first,
                       int64_t k_first)
{
    int64_t rows = f->queries[p->ragged ? b : 0], columns = f->tokens[p->ragged ? b : 0];
    int64_t at_b = p->ragged ? 0 : b, kv = h * p->kv_heads / p->heads;
    double *scores = calloc((size_t)columns + 1, sizeof *scores), expected[256];
    int64_t stride = p->tokens_first ? p->kv_heads : 1;
    double unit = scale_of(t, 0, kv) * scale_of(t, 1, kv), weight = scale_of(t, 2, kv);
    double tolerance = is_eight(p) ? 8e-2 : strcmp(p->type, "f16") ? 2e-2 : 4e-3;
    for (int64_t i = 0; i < rows; i++) {
        const double *q = t->q.values + place(p, at_b, h, q_first + i, p->heads, t->n, p->dim);
        const double *k = t->k.values + place(p, at_b, kv, k_first, p->kv_heads, t->nk, p->dim);
        const double *v = t->v.values + place(p, at_b, kv, k_first, p->kv_heads, t->nk,
                                              p->value_dim);
        for (int64_t j = 0; j < columns; j++)
            scores[j] = score(f, p, t, b, h, i, j,
                              unit * product(q, k + j * stride * p->dim, p->dim));
        double lse = row_of(scores, columns, p->sinks ? t->sinks.values[h] : -INFINITY, v,
                            stride * p->value_dim, p->value_dim, expected);
        for (int64_t c = 0; c < p->value_dim; c++)
            expected[c] *= weight;
        assert_near("o", t->o.values + place(p, at_b, h, q_first + i, p->heads, t->n,
                                             p->value_dim),
                    expected, (size_t)p->value_dim, tolerance);
        if (p->lse)
            assert_near("lse", &t->lse.values[(at_b * p->heads + h) * t->n + q_first + i], &lse, 1,
                        2e-3);
    }
    free(scores);
}

/* ---- gradients ---------------------------------------------------------- */

/* Tensors that a backward pass takes beside the forward one's, and those that it gives. */
typedef struct Gradients {
    Tensor d_o, dq, dk, dv;
    double *expected_q, *expected_k, *expected_v;
} Gradients;

/* Adds the gradients of row i of a head, whose rows of k and v begin at `k` and `v`, `stride` rows
 * apart. */
static void add_row(const Forward *f, const tilus_attention_problem *p, const ForwardTensors *t,
                    Gradients *g, int64_t b, int64_t h, int64_t i, int64_t columns, size_t q,
                    size_t k, int64_t stride)
{
    size_t d = (size_t)p->dim;
    const double *x = t->q.values + q, *o = t->o.values + q, *d_o = g->d_o.values + q;
    double *scores = calloc((size_t)columns + 1, sizeof *scores), *row = calloc(d, sizeof *row);
    for (int64_t j = 0; j < columns; j++)
        scores[j] = score(f, p, t, b, h, i, j,
                          product(x, t->k.values + k + (size_t)(j * stride) * d, p->dim));
    double lse = row_of(scores, columns, -INFINITY, t->v.values + k, stride * p->dim, p->dim, row);
    double delta = product(d_o, o, p->dim);
    for (int64_t j = 0; j < columns && !isinf(lse); j++) {
        size_t at = k + (size_t)(j * stride) * d;
        double weight = exp(scores[j] - lse), capped = p->cap > 0 ? scores[j] / p->cap : 0;
        double slope = weight * (product(d_o, t->v.values + at, p->dim) - delta) *
                       (1 - capped * capped) * p->scale;
        for (size_t c = 0; c < d && weight > 0; c++) {
            g->expected_q[q + c] += slope * t->k.values[at + c];
            g->expected_k[at + c] += slope * x[c];
            g->expected_v[at + c] += weight * d_o[c];
        }
    }
    free(scores);
    free(row);
}

static void expect_gradients(const Forward *f, const tilus_attention_problem *p,
                             const ForwardTensors *t, Gradients *g)
{
    int64_t q_first = 0, k_first = 0, stride = p->tokens_first ? p->kv_heads : 1;
    for (int64_t b = 0; b < f->batch; b++) {
        int64_t rows = f->queries[p->ragged ? b : 0], columns = f->tokens[p->ragged ? b : 0];
        int64_t at_b = p->ragged ? 0 : b;
        for (int64_t h = 0; h < p->heads && !f->poisoned[b]; h++) {
            int64_t kv = h * p->kv_heads / p->heads;
            int64_t k = place(p, at_b, kv, k_first, p->kv_heads, t->nk, p->dim);
            for (int64_t i = 0; i < rows; i++)
                add_row(f, p, t, g, b, h, i, columns,
                        (size_t)place(p, at_b, h, q_first + i, p->heads, t->n, p->dim), (size_t)k,
                        stride);
        }
        q_first += p->ragged ? rows : 0;
        k_first += p->ragged ? columns : 0;
    }
    spoil(f, g->expected_q, &t->q_starts, p->heads * p->dim, NAN);
    spoil(f, g->expected_k, &t->k_starts, p->kv_heads * p->dim, NAN);
    spoil(f, g->expected_v, &t->k_starts, p->kv_heads * p->value_dim, NAN);
}

static void run_backward(tilus_attention_plan *plan, const tilus_attention_shape *shape,
                         const ForwardTensors *t, const Gradients *g)
{
    tilus_attention_gradients call = {
        .struct_size = sizeof call, .shape = shape, .q = t->q.address, .k = t->k.address,
        .v = t->v.address, .o = t->o.address, .lse = t->lse.address, .d_o = g->d_o.address,
        .dq = g->dq.address, .dk = g->dk.address, .dv = g->dv.address,
        .q_starts = t->q_starts.address, .k_starts = t->k_starts.address};
    assert_ok(tilus_attention_backward_workspace_size(plan, shape, &call.workspace_size));
    assert_ok(tilus_rt_allocate(rt, 0, call.workspace_size, &call.workspace));
    assert_ok(tilus_rt_fill(rt, 0, call.workspace, 0xff, call.workspace_size));
    assert_ok(tilus_attention_backward(plan, NULL, &call));
    tilus_rt_release(rt, 0, call.workspace);
}

static void check_gradients(const Forward *f, tilus_attention_plan *plan,
                            const tilus_attention_shape *shape, const ForwardTensors *t)
{
    const tilus_attention_problem *p = &plan->problem;
    Gradients g = {.d_o = random_tensor(p->type, (int64_t)t->o.count),
                   .dq = result_tensor(p->type, (int64_t)t->q.count),
                   .dk = result_tensor(p->type, (int64_t)t->k.count),
                   .dv = result_tensor(p->type, (int64_t)t->v.count)};
    poison(f, &g.d_o, &t->q_starts, p->heads * p->value_dim);
    g.expected_q = calloc(t->q.count, sizeof(double));
    g.expected_k = calloc(t->k.count, sizeof(double));
    g.expected_v = calloc(t->v.count, sizeof(double));
    expect_gradients(f, p, t, &g);
    run_backward(plan, shape, t, &g);
    Tensor *results[] = {&g.dq, &g.dk, &g.dv, &g.d_o};
    double *expected[] = {g.expected_q, g.expected_k, g.expected_v};
    static const char *const names[] = {"dq", "dk", "dv"};
    for (int i = 0; i < 3; i++) {
        download(results[i]);
        assert_near(names[i], results[i]->values, expected[i], results[i]->count, 3e-2);
        free(expected[i]);
    }
    for (int i = 0; i < 4; i++)
        drop(results[i]);
}

/* Runs a call, with a workspace that holds NaN. */
static void run_call(tilus_attention_plan *plan, const tilus_attention_shape *shape,
                     const tilus_attention_call *call)
{
    tilus_attention_call own = *call;
    assert_ok(tilus_attention_workspace_size(plan, shape, &own.workspace_size));
    assert_ok(tilus_rt_allocate(rt, 0, own.workspace_size + 256, &own.workspace));
    assert_ok(tilus_rt_fill(rt, 0, own.workspace, 0xff, own.workspace_size));
    assert_ok(tilus_attention_prepare(plan, shape));
    assert_ok(tilus_attention_run(plan, NULL, &own));
    tilus_rt_release(rt, 0, own.workspace);
}

static void check_forward(const Forward *f)
{
    tilus_attention_plan *plan = plan_of(&f->problem);
    const tilus_attention_problem *p = &plan->problem;
    ForwardTensors t = forward_tensors(f, p);
    tilus_attention_shape shape = {.struct_size = sizeof shape, .batch = f->batch,
                                   .queries = t.n, .tokens = t.nk, .masks = f->masks,
                                   .schedule = f->schedule};
    for (int64_t b = 0; b < f->batch && p->ragged; b++)
        shape.longest = f->queries[b] > shape.longest ? f->queries[b] : shape.longest;
    if (f->longest)
        shape.longest = f->longest;
    if (f->longest && p->gradients)
        shape.longest_tokens = f->longest;
    const tilus_attention_call call = {
        .struct_size = sizeof call, .shape = &shape, .q = t.q.address, .k = t.k.address,
        .v = t.v.address, .o = t.o.address, .lse = t.lse.address, .sinks = t.sinks.address,
        .mask = t.mask.address, .q_starts = t.q_starts.address, .k_starts = t.k_starts.address,
        .scales = t.scales.address};
    run_call(plan, &shape, &call);
    download(&t.o);
    if (p->lse)
        download(&t.lse);
    int64_t firsts[2] = {0, 0};
    for (int64_t b = 0; b < f->batch; b++) {
        for (int64_t h = 0; h < p->heads && !f->poisoned[b]; h++)
            check_head(f, p, &t, b, h, firsts[0], firsts[1]);
        firsts[0] += p->ragged ? f->queries[b] : 0;
        firsts[1] += p->ragged ? f->tokens[b] : 0;
    }
    if (p->gradients)
        check_gradients(f, plan, &shape, &t);
    drop_forward(&t);
    tilus_attention_plan_free(plan);
}

static void computes_forward(void **state)
{
    (void)state;
    const Forward cases[] = {
        {.problem = {.heads = 4, .kv_heads = 2, .dim = 64, .lse = true, .gradients = true},
         .batch = 2, .queries = {70}, .tokens = {150}},
        {.problem = {.heads = 2, .kv_heads = 1, .dim = 64, .causal = true, .ragged = true,
                     .lse = true, .gradients = true, .cap = 2}, .batch = 4,
         .queries = {5, 0, 80, 1}, .tokens = {40, 0, 30, 90}, .longest = 1 << 24},
        {.problem = {.heads = 2, .kv_heads = 1, .dim = 64, .ragged = true, .lse = true,
                     .gradients = true}, .batch = 4, .poisoned = {[1] = true, [3] = true},
         .queries = {70, 5, 9, 3}, .tokens = {140, 3, 20, 90}},
        {.problem = {.heads = 1, .dim = 256, .lse = true, .gradients = true}, .batch = 1,
         .queries = {9}, .tokens = {70}},
        {.problem = {.heads = 2, .dim = 64, .causal = true, .lse = true, .sinks = true},
         .batch = 1, .queries = {30}, .tokens = {10}, .no_sink = true},
        {.problem = {.heads = 1, .dim = 64, .causal = true, .lse = true}, .batch = 1,
         .queries = {260}, .tokens = {260}, .schedule = TILUS_ATTENTION_FOLDED},
        {.problem = {.heads = 1, .dim = 64, .causal = true, .tokens_first = true}, .batch = 2,
         .queries = {30}, .tokens = {10}, .schedule = TILUS_ATTENTION_QUEUES},
        {.problem = {.heads = 2, .kv_heads = 1, .dim = 64, .causal = true, .ragged = true,
                     .lse = true, .sinks = true}, .batch = 4,
         .queries = {5, 0, 300, 129}, .tokens = {40, 0, 300, 128}},
        {.problem = {.heads = 1, .dim = 64, .window = true, .left = 100, .right = 2, .cap = 1.5},
         .batch = 1, .queries = {30}, .tokens = {300}},
        {.problem = {.heads = 1, .dim = 64, .causal = true, .window = true, .left = 20},
         .batch = 1, .queries = {150}, .tokens = {150}},
        {.problem = {.heads = 3, .dim = 64, .mask = TILUS_ATTENTION_ADDED, .scale = 0.3},
         .batch = 1, .queries = {40}, .tokens = {70}, .masks = 2},
        {.problem = {.heads = 2, .dim = 64, .mask = TILUS_ATTENTION_BOOLEAN, .lse = true},
         .batch = 1, .queries = {40}, .tokens = {70}, .masks = 1},
        {.problem = {.type = "bf16", .heads = 1, .dim = 192, .value_dim = 128}, .batch = 1,
         .queries = {20}, .tokens = {30}},
        {.problem = {.heads = 1, .dim = 96}, .batch = 1, .queries = {20}, .tokens = {30}}};
    for (size_t i = 0; i < COUNT(cases); i++)
        check_forward(&cases[i]);
}

/* Computes with 8-bit floats: v is arranged in a workspace that begins as NaN. */
static void computes_forward_of_eight_bits(void **state)
{
    (void)state;
    const Forward cases[] = {
        {.problem = {.type = "f8e4m3", .heads = 4, .kv_heads = 2, .dim = 64, .lse = true},
         .batch = 2, .queries = {70}, .tokens = {150}},
        {.problem = {.type = "f8e4m3", .out_type = "f16", .heads = 2, .kv_heads = 1,
                     .causal = true, .tokens_first = true, .sinks = true, .cap = 2},
         .batch = 2, .queries = {30}, .tokens = {170}},
        {.problem = {.type = "f8e4m3", .heads = 2, .kv_heads = 1, .dim = 64, .ragged = true,
                     .lse = true}, .batch = 4, .poisoned = {[1] = true, [3] = true},
         .queries = {70, 5, 9, 3}, .tokens = {140, 3, 20, 90}},
        {.problem = {.type = "f8e4m3", .out_type = "bf16", .heads = 3, .dim = 64,
                     .mask = TILUS_ATTENTION_ADDED}, .batch = 1, .queries = {40}, .tokens = {70},
         .masks = 2},
        {.problem = {.type = "f8e4m3", .heads = 1, .dim = 64, .causal = true}, .batch = 1,
         .queries = {260}, .tokens = {260}, .schedule = TILUS_ATTENTION_FOLDED},
        {.problem = {.type = "f8e4m3", .heads = 1, .dim = 192, .value_dim = 128}, .batch = 1,
         .queries = {20}, .tokens = {30}, .schedule = TILUS_ATTENTION_BLOCKS},
        {.problem = {.type = "f8e4m3", .heads = 67, .kv_heads = 1, .dim = 64}, .batch = 1,
         .queries = {130}, .tokens = {130}}};                   /* by three warpgroups */
    for (size_t i = 0; i < COUNT(cases); i++)
        check_forward(&cases[i]);
}

/* ---- decoding ----------------------------------------------------------- */

typedef struct Decode {
    tilus_attention_problem problem;
    int64_t batch;
    int32_t lengths[SEQUENCES_MAX];
    int64_t splits;
    double step;                /* numbers of the cache are multiples of it .. */
    int least, most;            /* .. by these, which each part of a head has */
} Decode;

/* Tokens of all sequences, [tokens, heads, dim], and their places in a cache of mixed pages. */
typedef struct Cache {
    Tensor k, v, new_k, new_v, scales, table, lengths, slots;
    int64_t tokens, pages, columns;
} Cache;

static void place_tokens(const Decode *d, int64_t page, Cache *c)
{
    int32_t table[256], slots[2048], lengths[SEQUENCES_MAX];
    for (int64_t b = 0; b < d->batch; b++) {
        int64_t columns = (d->lengths[b] + page - 1) / page;
        c->columns = columns > c->columns ? columns : c->columns;
    }
    c->pages = d->batch * c->columns;
    for (int64_t i = 0; i < c->pages; i++)      /* 7 and the number have no common divisor */
        table[i] = (int32_t)(i * 7 % c->pages);
    for (int64_t b = 0; b < d->batch; b++) {
        lengths[b] = d->lengths[b];
        for (int64_t t = 0; t < d->lengths[b]; t++)
            slots[c->tokens++] = (int32_t)(table[b * c->columns + t / page] * page + t % page);
    }
    assert_true(c->pages % 7);
    c->table = integers(table, (size_t)c->pages);
    c->slots = integers(slots, (size_t)c->tokens);
    c->lengths = integers(lengths, (size_t)d->batch);
}

static Tensor new_tokens(const Decode *d, const tilus_attention_problem *p, int64_t tokens)
{
    Tensor t = tensor(p->type, tokens * p->kv_heads * p->dim);
    int64_t part = p->dim / p->groups;
    for (int64_t i = 0; i < (int64_t)t.count; i++) {
        int number = d->least + (int)((draw() + 1) / 2 * (d->most - d->least + 1));
        t.values[i] = (i % part == 0 ? d->least : i % part == 1 ? d->most : number) * d->step;
    }
    upload(&t);
    return t;
}

/* Makes a cache; what is behind the ends of sequences is NaN, or of finite problems large. */
static Cache cache_of(const Decode *d, tilus_attention_plan *plan)
{
    enum { nan = 0xff, large = 0x7b };      /* each byte of f16, bf16 and f8e4m3 */
    const tilus_attention_problem *p = &plan->problem;
    Cache c = {.tokens = 0};
    place_tokens(d, p->page, &c);
    const char *codes = plan->cache ? plan->cache->name : p->type;
    int64_t rows = c.pages * p->page * p->kv_heads;
    c.k = tensor(codes, rows * p->dim);
    c.v = tensor(codes, rows * p->dim);
    const unsigned char rest = p->finite ? large : nan;
    assert_ok(tilus_rt_fill(rt, 0, c.k.address, rest, c.k.size));
    assert_ok(tilus_rt_fill(rt, 0, c.v.address, rest, c.v.size));
    if (plan->cache) {
        c.scales = tensor("f16", rows * p->groups * (plan->cache->zeros ? 4 : 2));
        assert_ok(tilus_rt_fill(rt, 0, c.scales.address, rest, c.scales.size));
    }
    c.new_k = new_tokens(d, p, c.tokens);
    c.new_v = new_tokens(d, p, c.tokens);
    const tilus_attention_tokens tokens = {
        .struct_size = sizeof tokens, .tokens = c.tokens, .pages = c.pages,
        .new_k = c.new_k.address, .new_v = c.new_v.address, .slots = c.slots.address,
        .k = c.k.address, .v = c.v.address, .scales = c.scales.address};
    assert_ok(tilus_attention_append(plan, NULL, &tokens));
    return c;
}

static void drop_cache(Cache *c)
{
    Tensor *all[] = {&c->k, &c->v, &c->new_k, &c->new_v, &c->scales, &c->table, &c->lengths,
                     &c->slots};
    for (size_t i = 0; i < COUNT(all); i++)
        drop(all[i]);
}

/* Compares o with sums over tokens whose rows of k and v, of kv_heads heads, lie one after
 * another. */
static void check_decoded(const Decode *d, const tilus_attention_problem *p, const Tensor *q,
                          const double *k, const double *v, const Tensor *o)
{
    int64_t at = 0, stride = p->kind == TILUS_ATTENTION_LATENT ? 1 : p->kv_heads;
    double scores[512], expected[512];
    int64_t v_stride = p->kind == TILUS_ATTENTION_LATENT ? p->dim : stride * p->value_dim;
    for (int64_t b = 0; b < d->batch; at += d->lengths[b++])
        for (int64_t h = 0; h < p->heads; h++) {
            int64_t kv = h * stride / p->heads, row = b * p->heads + h;
            for (int64_t j = 0; j < d->lengths[b]; j++)
                scores[j] = p->scale * product(q->values + row * p->dim,
                                               k + ((at + j) * stride + kv) * p->dim, p->dim);
            row_of(scores, d->lengths[b], -INFINITY, v + at * v_stride + kv * p->value_dim,
                   v_stride, p->value_dim, expected);
            assert_near("o", o->values + row * p->value_dim, expected, (size_t)p->value_dim,
                        strcmp(p->type, "f16") ? 2e-2 : 4e-3);
        }
}

static void check_decode(const Decode *d)
{
    tilus_attention_plan *plan = plan_of(&d->problem);
    const tilus_attention_problem *p = &plan->problem;
    Cache c = cache_of(d, plan);
    Tensor q = tensor(p->type, d->batch * p->heads * p->dim);
    Tensor o = result_tensor(p->type, d->batch * p->heads * p->dim);
    for (size_t i = 0; i < q.count; i++)
        q.values[i] = draw() > 0 ? 0.5 : -1;
    upload(&q);
    const tilus_attention_shape shape = {.struct_size = sizeof shape, .batch = d->batch,
                                         .tokens = 100, .pages = c.pages, .columns = c.columns,
                                         .splits = d->splits};
    const tilus_attention_call call = {
        .struct_size = sizeof call, .shape = &shape, .q = q.address, .k = c.k.address,
        .v = c.v.address, .o = o.address, .scales = c.scales.address, .table = c.table.address,
        .lengths = c.lengths.address};
    run_call(plan, &shape, &call);
    download(&o);
    check_decoded(d, p, &q, c.new_k.values, c.new_v.values, &o);
    drop(&q);
    drop(&o);
    drop_cache(&c);
    tilus_attention_plan_free(plan);
}

static void decodes(void **state)
{
    (void)state;
    const tilus_attention_kind decode = TILUS_ATTENTION_DECODE;
    const Decode cases[] = {
        {{.kind = decode, .heads = 8, .kv_heads = 2, .dim = 64, .page = 16, .tokens_first = true},
         3, {40, 0, 70}, 2, 1.0 / 64, -64, 64},
        {{.kind = decode, .heads = 40, .kv_heads = 1, .dim = 64, .page = 32, .type = "bf16"},
         2, {90, 1}, 1, 1.0 / 64, -64, 64},
        {{.kind = decode, .heads = 16, .kv_heads = 2, .page = 32, .cache = "u4", .finite = true},
         3, {60, 0, 150}, 2, 1.0 / 8, -8, 7},
        {{.kind = decode, .heads = 4, .kv_heads = 2, .page = 16, .cache = "u4", .groups = 2,
          .tokens_first = true}, 1, {60}, 1, 1.0 / 8, -8, 7},
        {{.kind = decode, .heads = 2, .kv_heads = 1, .page = 64, .cache = "u3"},
         1, {50}, 1, 1.0 / 4, -4, 3},
        {{.kind = decode, .heads = 4, .kv_heads = 2, .dim = 64, .page = 16, .cache = "u8",
          .plain = true}, 2, {33, 5}, 1, 1.0 / 128, -128, 127},
        {{.kind = decode, .heads = 2, .kv_heads = 1, .dim = 256, .page = 64, .cache = "u8",
          .finite = true}, 1, {70}, 1, 1.0 / 128, -128, 127},
        {{.kind = decode, .heads = 2, .kv_heads = 1, .dim = 64, .page = 16, .cache = "f8e4m3"},
         2, {20, 5}, 1, 1.0 / 64, -7, 7},
        {{.kind = decode, .heads = 2, .kv_heads = 1, .dim = 64, .page = 16, .cache = "f8e4m3",
          .finite = true}, 2, {20, 5}, 1, 1.0 / 64, -7, 7}};
    for (size_t i = 0; i < COUNT(cases); i++)
        check_decode(&cases[i]);
}

static void decodes_latent_heads(void **state)
{
    (void)state;
    const Decode d = {.problem = {.kind = TILUS_ATTENTION_LATENT, .heads = 20, .type = "f16",
                                  .finite = true, .scale = 0.05},
                      .batch = 2, .lengths = {70, 128}};
    const int32_t lengths[] = {70, 128}, table[] = {2, 0, 1, 3};
    tilus_attention_plan *plan = plan_of(&d.problem);
    const tilus_attention_problem *p = &plan->problem;
    Tensor q = random_tensor("f16", 2 * 20 * 576), cache = random_tensor("f16", 4 * 64 * 576);
    Tensor o = result_tensor("f16", 2 * 20 * 512);
    Tensor t = integers(table, 4), l = integers(lengths, 2);
    double *tokens = calloc(198 * 576, sizeof *tokens);
    for (int i = 0; i < 198; i++) {
        int b = i >= 70, at = b ? i - 70 : i;
        memcpy(tokens + i * 576, cache.values + (table[2 * b + at / 64] * 64 + at % 64) * 576,
               576 * sizeof *tokens);
    }
    for (int64_t splits = 1; splits <= 2; splits++) {
        const tilus_attention_shape shape = {.struct_size = sizeof shape, .batch = 2,
                                             .tokens = 128, .pages = 4, .columns = 2,
                                             .splits = splits};
        const tilus_attention_call call = {.struct_size = sizeof call, .shape = &shape,
                                           .q = q.address, .k = cache.address, .o = o.address,
                                           .table = t.address, .lengths = l.address};
        run_call(plan, &shape, &call);
        download(&o);
        check_decoded(&d, p, &q, tokens, tokens, &o);
    }
    free(tokens);
    Tensor *all[] = {&q, &cache, &o, &t, &l};
    for (size_t i = 0; i < COUNT(all); i++)
        drop(all[i]);
    tilus_attention_plan_free(plan);
}

/* ---- plans -------------------------------------------------------------- */

static void describes_plans(void **state)
{
    (void)state;
    const tilus_attention_kind decode = TILUS_ATTENTION_DECODE;
    const struct {
        tilus_attention_problem problem;
        tilus_attention_shape shape;
        const char *text;       /* parts, each of which the description has */
    } cases[] = {
        {{.heads = 32}, {.batch = 1, .queries = 4096, .tokens = 4096}, "schedule queues"},
        {{.heads = 32, .causal = true}, {.batch = 1, .queries = 512, .tokens = 512},
         "schedule folded"},
        {{.heads = 32, .causal = true}, {.batch = 1, .queries = 1024, .tokens = 1024},
         "schedule queues"},
        {{.heads = 35, .causal = true}, {.batch = 1, .queries = 2048, .tokens = 2048},
         "schedule blocks"},
        {{.heads = 32, .kv_heads = 8, .causal = true},
         {.batch = 16, .queries = 128, .tokens = 128}, "schedule folded"},
        {{.heads = 8, .causal = true, .ragged = true},
         {.batch = 4, .queries = 1000, .tokens = 1000, .longest = 500}, "ragged\nschedule blocks"},
        {{.heads = 8, .causal = true, .ragged = true},
         {.batch = 1, .queries = 1000, .tokens = 1000, .longest = 1 << 24}, "ragged\nschedule "},
        {{.kind = decode, .heads = 32, .kv_heads = 8},
         {.batch = 1, .tokens = 131072, .pages = 2048, .columns = 2048}, "\n32 splits, "},
        {{.kind = decode, .heads = 32, .kv_heads = 8},
         {.batch = 128, .tokens = 1024, .pages = 2048, .columns = 16}, "\n1 split, "},
        {{.kind = decode, .heads = 32, .kv_heads = 8, .cache = "u4", .finite = true},
         {.batch = 1, .tokens = 131072, .pages = 2048, .columns = 2048},
         "cache of u4 in pages of 64, copied by pages\n32 splits, "},
        {{.kind = TILUS_ATTENTION_LATENT, .heads = 128, .type = "bf16", .finite = true},
         {.batch = 64, .tokens = 4096, .pages = 4096, .columns = 64}, "\n1 split, "}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        tilus_attention_shape shape = cases[i].shape;
        tilus_attention_plan *plan = plan_of(&cases[i].problem);
        shape.struct_size = sizeof shape;
        char *text = tilus_attention_describe(plan, &shape);
        if (!text || !strstr(text, cases[i].text))
            fail_msg("case %zu: %s", i, text ? text : tilus_rt_error());
        tilus_free(text);
        tilus_attention_plan_free(plan);
    }
}

static void lists_kernels(void **state)
{
    (void)state;
    const struct {
        tilus_attention_problem problem;
        const char *kernels;
    } cases[] = {
        {{.heads = 1, .mask = TILUS_ATTENTION_BOOLEAN, .dim = 64, .type = "bf16"},
         "attention-bf16-d64-mask2-bool-blocks132-sm_90a\tattention\tT=bf16 D=64 MASK=2 M=bool "
         "BLOCKS=132\n"
         "attention-bf16-d64-mask2-bool-blocks1048576-queries-pairs0-sm_90a\tattention\tT=bf16 "
         "D=64 MASK=2 M=bool BLOCKS=1048576 QUERIES=1 PAIRS=0\n"},
        {{.heads = 1, .type = "f8e4m3", .out_type = "f16", .dim = 192, .value_dim = 128,
          .ragged = true},
         "attention-f8e4m3-f16-d192-dv128-ragged-bn128-blocks132-sm_90a\tattention\tT=f8e4m3 "
         "O=f16 D=192 DV=128 RAGGED=1 BN=128 BLOCKS=132\n"
         "attention-f8e4m3-f16-d192-dv128-ragged-bn128-blocks1048576-queries-pairs0-sm_90a\t"
         "attention\tT=f8e4m3 O=f16 D=192 DV=128 RAGGED=1 BN=128 BLOCKS=1048576 QUERIES=1 "
         "PAIRS=0\n"
         "arrange_v-f8e4m3-d128-ragged-bn128-sm_90a\tarrange_v\tT=f8e4m3 D=128 RAGGED=1 "
         "BN=128\n"},
        {{.kind = TILUS_ATTENTION_DECODE, .heads = 8, .kv_heads = 1, .cache = "f8e4m3",
          .plain = true, .finite = true},
         "attend-f16-f8e4m3-d128-page64-heads_first-plain-group8-bulk-sm_90a\tattend\tT=f16 "
         "C=f8e4m3 D=128 PAGE=64 HEADS_FIRST=1 PLAIN=1 GROUP=8 BULK=1\n"
         "combine-f16-d128-sm_90a\tcombine\tT=f16 D=128\n"
         "append-f16-f8e4m3-d128-page64-heads_first-plain-most448-sm_90a\tappend\tT=f16 C=f8e4m3 "
         "D=128 PAGE=64 HEADS_FIRST=1 PLAIN=1 MOST=448\n"
         "combine-f16-d128-combined8-sm_90a\tcombine\tT=f16 D=128 COMBINED=8\n"
         "combine-f16-d128-combined32-sm_90a\tcombine\tT=f16 D=128 COMBINED=32\n"},
        {{.kind = TILUS_ATTENTION_LATENT, .heads = 1, .finite = true},
         "mla-f16-sm_90a\tmla\tT=f16\ncombine-f16-d512-sm_90a\tcombine\tT=f16 D=512\n"
         "combine-f16-d512-combined4-sm_90a\tcombine\tT=f16 D=512 COMBINED=4\n"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        tilus_attention_plan *plan = plan_of(&cases[i].problem);
        char *text = tilus_attention_kernels(plan, NULL);
        assert_string_equal(text, cases[i].kernels);
        tilus_free(text);
        tilus_attention_plan_free(plan);
    }
}

/* ---- refusals ----------------------------------------------------------- */

static void refuses_problems(void **state)
{
    (void)state;
    const tilus_attention_kind decode = TILUS_ATTENTION_DECODE, latent = TILUS_ATTENTION_LATENT;
    const struct {
        tilus_attention_problem problem;
        const char *message;
    } cases[] = {
        {{.heads = 0}, "problem: heads is 0, not 1 to 65535"},
        {{.kind = 3}, "problem: kind is 3, not 0 to 2"},
        {{.heads = 1, .mask = 3}, "problem: mask is 3, not 0 to 2"},
        {{.heads = 1, .type = "f32"}, "problem: type is \"f32\", not f16, bf16 or f8e4m3"},
        {{.heads = 1, .kind = decode, .type = "f8e4m3"},
         "problem: type is \"f8e4m3\", not f16 or bf16"},
        {{.heads = 1, .type = "f8e4m3", .out_type = "f8e4m3"},
         "problem: out_type is \"f8e4m3\", not f16 or bf16"},
        {{.heads = 1, .out_type = "bf16"}, "problem: out_type is \"bf16\", not f16"},
        {{.heads = 1, .type = "f8e4m3", .lse = true, .gradients = true},
         "problem: gradients is given, but type is f8e4m3"},
        {{.heads = 8, .kv_heads = 3}, "problem: kv_heads is 3, no divisor of heads, 8"},
        {{.heads = 1, .dim = 80}, "problem: dim is 80, not 64, 96, 128, 192 or 256"},
        {{.heads = 1, .dim = 96, .kind = decode}, "problem: dim is 96, not 64, 128 or 256"},
        {{.heads = 1, .dim = 192, .value_dim = 64}, "problem: value_dim is 64, not 192 or 128"},
        {{.heads = 1, .scale = -1}, "problem: scale is -1, not 0 or 1e-30 to 1e+30"},
        {{.heads = 1, .scale = 1e39}, "problem: scale is 1e+39, not 0 or 1e-30 to 1e+30"},
        {{.heads = 1, .scale = NAN}, "problem: scale is nan, not 0 or 1e-30 to 1e+30"},
        {{.heads = 1, .cap = INFINITY}, "problem: cap is inf, not 0 or 1e-30 to 1e+30"},
        {{.heads = 1, .cap = 1e-60}, "problem: cap is 1e-60, not 0 or 1e-30 to 1e+30"},
        {{.heads = 1, .left = 3}, "problem: left is given, but window is not"},
        {{.heads = 1, .window = true, .causal = true, .right = 3},
         "problem: right is 3, but causal rows see nothing there"},
        {{.heads = 1, .ragged = true, .mask = TILUS_ATTENTION_ADDED},
         "problem: a mask is given, but ragged sequences have none"},
        {{.heads = 1, .kind = decode, .causal = true},
         "problem: causal is given, but decoding has none: give 0"},
        {{.heads = 1, .cache = "u4"},
         "problem: cache is given, but forward attention has none: give 0"},
        {{.heads = 1, .kind = decode, .cache = "i4"},
         "problem: cache is \"i4\", not f16, u2, u3, u4, u6, u8, f4e2m1, f6e3m2 or f8e4m3"},
        {{.heads = 1, .kind = decode, .cache = "u3", .dim = 64},
         "problem: groups is 1, but a cache of u3 has parts of multiples of 128 of the 64 columns"},
        {{.heads = 1, .kind = decode, .groups = 3, .cache = "u4"},
         "problem: groups is 3, not 1, 2, 4 or 8"},
        {{.heads = 1, .kind = decode, .groups = 2},
         "problem: groups is 2, but a cache of f16 has no scales"},
        {{.heads = 1, .kind = decode, .page = 48},
         "problem: page is 48, not a power of two, 1 to 1024"},
        {{.heads = 128, .kv_heads = 1, .kind = decode},
         "problem: 128 heads share one of k, more than 64"},
        {{.heads = 1, .kind = decode, .plain = true},
         "problem: plain is given, but the cache is of f16"},
        {{.heads = 1, .gradients = true}, "problem: gradients is given, but lse is not"},
        {{.heads = 1, .gradients = true, .lse = true, .sinks = true},
         "problem: gradients is given, but sinks are, too"},
        {{.heads = 1, .reserved = {1}}, "problem: reserved[0] is 1, not 0"},
        {{.heads = 1, .kind = latent}, "problem: finite is false, but latent attention multiplies "
         "rows of pages behind their end by 0"},
        {{.heads = 1, .kind = latent, .finite = true, .page = 32},
         "problem: page is given, but latent attention has none: give 0"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        tilus_attention_problem p = cases[i].problem;
        tilus_attention_plan *plan;
        p.struct_size = sizeof p;
        assert_int_equal(tilus_attention_plan_create(attention, &p, 0, &plan),
                         TILUS_ERROR_ARGUMENT);
        assert_null(plan);
        assert_string_equal(tilus_rt_error(), cases[i].message);
    }
}

static void refuses_shapes(void **state)
{
    (void)state;
    const tilus_attention_kind decode = TILUS_ATTENTION_DECODE;
    const tilus_attention_problem plain = {.heads = 4}, paged = {.kind = decode, .heads = 4};
    const tilus_attention_problem ragged = {.heads = 4, .ragged = true};
    const tilus_attention_problem one_head = {.kind = TILUS_ATTENTION_LATENT, .heads = 128,
                                              .finite = true};
    const struct {
        const tilus_attention_problem *problem;
        tilus_attention_shape shape;
        const char *message;
    } cases[] = {
        {&plain, {.batch = 0}, "shape: batch is 0, not 1 to 65535"},
        {&plain, {.batch = 1, .queries = 1 << 25}, "shape: queries is 33554432, not 1 to 16777216"},
        {&plain, {.batch = 1, .queries = 1}, "shape: tokens is 0, not 1 to 16777216"},
        {&plain, {.batch = 1, .queries = 1, .tokens = 1, .longest = 1},
         "shape: longest is 1, but the problem has none: give 0"},
        {&ragged, {.batch = 1, .queries = 5, .tokens = 1, .longest = 0},
         "shape: longest is 0, not 1 to 16777216"},
        {&ragged, {.batch = 1, .queries = 5, .tokens = 1, .longest = (1 << 24) + 1},
         "shape: longest is 16777217, not 1 to 16777216"},
        {&plain, {.batch = 1, .queries = 1, .tokens = 1, .schedule = 3},
         "shape: schedule is folded, which is for causal problems without a window, of equal "
         "lengths"},
        {&plain, {.batch = 65535, .queries = 1 << 24, .tokens = 1},
         "shape: 16777216 rows of 4 heads and 65535 sequences are more than 2^30 tiles of 128"},
        {&plain, {.batch = 1, .queries = 1, .tokens = 1, .reserved = {0, 1}},
         "shape: reserved[1] is 1, but the problem has none: give 0"},
        {&paged, {.batch = 1, .tokens = 9, .pages = 1 << 23, .columns = 1},
         "shape: pages is 8388608, not 1 to 8388607"},
        {&one_head, {.batch = 1, .tokens = 9, .pages = 1 << 25, .columns = 1},
         "shape: pages is 33554432, not 1 to 33554431"},
        {&paged, {.batch = 1, .tokens = 9, .pages = 1, .columns = 1, .splits = 2000},
         "shape: splits is 2000, not 0 to 1024"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        tilus_attention_shape shape = cases[i].shape;
        tilus_attention_plan *plan = plan_of(cases[i].problem);
        size_t size;
        shape.struct_size = sizeof shape;
        assert_int_equal(tilus_attention_workspace_size(plan, &shape, &size),
                         TILUS_ERROR_ARGUMENT);
        assert_string_equal(tilus_rt_error(), cases[i].message);
        assert_null(tilus_attention_describe(plan, &shape));
        assert_null(tilus_attention_kernels(plan, &shape));
        tilus_attention_plan_free(plan);
    }
}

static void refuses_calls(void **state)
{
    (void)state;
    const tilus_attention_problem p = {.kind = TILUS_ATTENTION_DECODE, .heads = 2};
    const tilus_attention_shape shape = {.struct_size = sizeof shape, .batch = 1, .tokens = 4096,
                                         .pages = 64, .columns = 64};
    const struct {
        tilus_attention_call call;
        const char *message;
    } cases[] = {
        {{.shape = NULL}, "shape is NULL"},
        {{.shape = &shape}, "call: q is 0"},
        {{.shape = &shape, .q = 256, .k = 8}, "call: k is 0x8, not a multiple of 16"},
        {{.shape = &shape, .q = 256, .k = 256, .v = 256, .o = 256, .sinks = 4},
         "call: sinks is given, but the problem has none: give 0"},
        {{.shape = &shape, .q = 256, .k = 256, .v = 256, .o = 256, .table = 4, .lengths = 4},
         "call: workspace_size is 0, and the shape needs "}};
    tilus_attention_plan *plan = plan_of(&p);
    for (size_t i = 0; i < COUNT(cases); i++) {
        tilus_attention_call call = cases[i].call;
        call.struct_size = sizeof call;
        assert_int_equal(tilus_attention_run(plan, NULL, &call), TILUS_ERROR_ARGUMENT);
        assert_int_equal(strncmp(tilus_rt_error(), cases[i].message, strlen(cases[i].message)), 0);
    }
    tilus_attention_tokens tokens = {.struct_size = sizeof tokens, .tokens = -1};
    assert_int_equal(tilus_attention_append(plan, NULL, &tokens), TILUS_ERROR_ARGUMENT);
    assert_string_equal(tilus_rt_error(), "tokens: tokens is -1, not 0 to 16777216");
    tilus_attention_plan_free(plan);
    plan = plan_of(&(tilus_attention_problem){.heads = 1});
    assert_int_equal(tilus_attention_append(plan, NULL, &tokens), TILUS_ERROR_UNSUPPORTED);
    assert_int_equal(tilus_attention_backward(plan, NULL, NULL), TILUS_ERROR_UNSUPPORTED);
    tilus_attention_plan_free(plan);
    plan = plan_of(&(tilus_attention_problem){.heads = 1, .lse = true, .gradients = true});
    const tilus_attention_shape forward = {.struct_size = sizeof forward, .batch = 1,
                                           .queries = 9, .tokens = 9};
    const tilus_attention_gradients gradients = {.struct_size = sizeof gradients,
                                                 .shape = &forward, .q = 16, .k = 16, .v = 16,
                                                 .o = 16, .lse = 4, .dq = 16};
    assert_int_equal(tilus_attention_backward(plan, NULL, &gradients), TILUS_ERROR_ARGUMENT);
    assert_string_equal(tilus_rt_error(), "gradients: d_o is 0");
    tilus_attention_plan_free(plan);
    plan = plan_of(&(tilus_attention_problem){.heads = 1, .type = "f8e4m3"});
    const tilus_attention_call unscaled = {.struct_size = sizeof unscaled, .shape = &forward,
                                           .q = 16, .k = 16, .v = 16, .o = 16};
    assert_int_equal(tilus_attention_run(plan, NULL, &unscaled), TILUS_ERROR_ARGUMENT);
    assert_string_equal(tilus_rt_error(), "call: scales is 0");
    tilus_attention_plan_free(plan);
}

/* A wrong address is told of its own argument, not of one that the problem has not. */
static void names_arguments(void **state)
{
    (void)state;
    enum { WRONG = 0x1000, TENSORS = 7 };
    static const char *const names[TENSORS] = {"q", "k", "v", "o", "scales", "table", "lengths"};
    const tilus_attention_problem p = {.kind = TILUS_ATTENTION_DECODE, .heads = 1, .dim = 64,
                                       .cache = "u8"};
    const tilus_attention_shape shape = {.struct_size = sizeof shape, .batch = 1, .tokens = 9,
                                         .pages = 1, .columns = 1, .splits = 1};
    tilus_attention_plan *plan = plan_of(&p);
    Tensor tensors = random_tensor("f16", 64 * 64);
    for (int i = 0; i < TENSORS; i++) {
        uint64_t at[TENSORS];
        char message[64];
        for (int j = 0; j < TENSORS; j++)
            at[j] = i == j ? WRONG : tensors.address;
        const tilus_attention_call call = {.struct_size = sizeof call, .shape = &shape, .q = at[0],
                                           .k = at[1], .v = at[2], .o = at[3], .scales = at[4],
                                           .table = at[5], .lengths = at[6]};
        snprintf(message, sizeof message, "argument %%%s = 0x1000 is in no allocation", names[i]);
        assert_int_equal(tilus_attention_run(plan, NULL, &call), TILUS_ERROR_ARGUMENT);
        if (!strstr(tilus_rt_error(), message))
            fail_msg("%s: %s", names[i], tilus_rt_error());
    }
    drop(&tensors);
    tilus_attention_plan_free(plan);
}

static void refuses_devices(void **state)
{
    (void)state;
    const tilus_rt_options options = {.struct_size = sizeof options, .device_count = 1,
                                      .devices = tilus_find_device("a100")};
    const tilus_attention_problem forward = {.struct_size = sizeof forward, .heads = 1};
    const tilus_attention_problem decode = {.struct_size = sizeof decode, .heads = 1,
                                            .kind = TILUS_ATTENTION_DECODE, .cache = "u8",
                                            .finite = true};
    tilus_rt *other;
    tilus_attention *library;
    tilus_attention_plan *plan;
    char message[256];
    assert_non_null(options.devices);
    assert_ok(tilus_rt_open(&options, &other, message, sizeof message));
    assert_ok(tilus_attention_open(other, NULL, &library));
    assert_int_equal(tilus_attention_plan_create(library, &forward, 0, &plan),
                     TILUS_ERROR_UNSUPPORTED);
    assert_non_null(strstr(tilus_rt_error(), "has compute capability 8.0, and this attention "
                                             "needs 9.0"));
    assert_int_equal(tilus_attention_plan_create(library, &forward, 1, &plan),
                     TILUS_ERROR_NO_DEVICE);
    assert_ok(tilus_attention_plan_create(library, &decode, 0, &plan));
    char *text = tilus_attention_kernels(plan, NULL);
    assert_null(strstr(text, "BULK"));
    tilus_free(text);
    assert_int_equal(tilus_attention_prepare(plan, NULL), TILUS_ERROR_NO_KERNEL);
    if (!strstr(tilus_rt_error(), "no kernel attend-f16-u8-"))
        fail_msg("%s", tilus_rt_error());
    if (!strstr(tilus_rt_error(), "-sm_80 "))
        fail_msg("%s", tilus_rt_error());
    tilus_attention_plan_free(plan);
    const tilus_attention_problem wide = {.struct_size = sizeof wide, .heads = 1, .dim = 256,
                                          .kind = TILUS_ATTENTION_DECODE};
    assert_int_equal(tilus_attention_plan_create(library, &wide, 0, &plan),
                     TILUS_ERROR_UNSUPPORTED);
    assert_non_null(strstr(tilus_rt_error(), "has 166912 bytes of shared memory for a block, and "
                                             "decoding of 256 columns of f16 needs 197632"));
    tilus_attention_close(library);
    tilus_rt_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(computes_forward),
        cmocka_unit_test(computes_forward_of_eight_bits), cmocka_unit_test(decodes),
        cmocka_unit_test(decodes_latent_heads), cmocka_unit_test(describes_plans),
        cmocka_unit_test(lists_kernels), cmocka_unit_test(refuses_problems),
        cmocka_unit_test(refuses_shapes), cmocka_unit_test(refuses_calls),
        cmocka_unit_test(names_arguments),
        cmocka_unit_test(refuses_devices),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
