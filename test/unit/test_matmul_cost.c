/* The cost model against what was measured (matmul_times.txt): how far its choices are from
 * the best that was seen, and what it says of single configurations. */
#include "matmul/config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct Line {
    char weights[8];
    long long n, k, m;
    MatmulConfig config;
    double us;
} Line;

/* Lines of one problem stand together. */
typedef struct Group {
    Line first;
    double best, chosen, least;     /* us: measured, measured of the choice, of the model */
} Group;

typedef struct Quality {
    unsigned lines, groups;
    double errors, losses, worst;   /* sums of shares, and the largest loss */
} Quality;

static MatmulDevice h200(void)
{
    return matmul_device("NVIDIA H200", 90, 132, 232448);
}

static double model(const Line *l)
{
    const tilus_matmul_problem problem = {.weights = l->weights, .n = l->n, .k = l->k,
                                          .group = 128, .zeros = TILUS_ZEROS_INTEGER};
    MatmulSpec s;
    MatmulDevice device = h200();
    char message[128];
    assert_true(matmul_spec(&problem, &s, message, sizeof message));
    return matmul_cost(&s, &l->config, l->m, &device);
}

static bool is_same_problem(const Line *a, const Line *b)
{
    return strcmp(a->weights, b->weights) == 0 && a->n == b->n && a->k == b->k &&
           a->m == b->m;
}

static void end_group(Quality *q, const Group *g)
{
    double loss = g->chosen / g->best - 1;
    q->groups++;
    q->losses += loss;
    q->worst = fmax(q->worst, loss);
    printf("%s %lldx%lld, m = %lld: best %.2f us, chosen %.2f us\n", g->first.weights,
           g->first.k, g->first.n, g->first.m, g->best, g->chosen);
}

static void add_line(Quality *q, Group *g, const Line *l)
{
    double us = model(l);
    q->lines++;
    q->errors += fabs(log(us / l->us));
    if (q->lines > 1 && !is_same_problem(&g->first, l))
        end_group(q, g);
    if (q->lines == 1 || !is_same_problem(&g->first, l))
        *g = (Group){*l, l->us, l->us, us};
    g->best = fmin(g->best, l->us);
    if (us < g->least) {
        g->least = us;
        g->chosen = l->us;
    }
}

static bool read_line(const char *text, Line *l)
{
    MatmulConfig *c = &l->config;
    int n = sscanf(text, "%7s %lld %lld %lld %d %d %d %d %d %d %d %d %d %lf", l->weights, &l->n,
                   &l->k, &l->m, &c->rows, &c->warps_n, &c->warps_k, &c->stage_k_tiles,
                   &c->stages, &c->tiles, &c->prearranged_a, &c->scale_weights, &c->per_sm, &l->us);
    c->columns = l->m < 8 ? (int)l->m : 8;
    return n == 14;
}

static Quality assess(void)
{
    Quality q = {0};
    Group g = {0};
    Line l = {0};
    char text[256];
    FILE *f = fopen(TILUS_TIMES, "r");
    assert_non_null(f);
    while (fgets(text, sizeof text, f))
        if (read_line(text, &l))
            add_line(&q, &g, &l);
    end_group(&q, &g);
    fclose(f);
    return q;
}

static void test_choices(void **state)
{
    (void)state;
    Quality q = assess();
    printf("%u problems, %u configurations: the choice is %.1f %% slower than the best on "
           "average, %.1f %% at most; single times are off by %.1f %%\n", q.groups, q.lines,
           100 * q.losses / q.groups, 100 * q.worst, 100 * q.errors / q.lines);
    assert_int_equal(q.groups, 86);
    assert_true(q.losses / q.groups < 0.04);
    assert_true(q.worst < 0.19);
    assert_true(q.errors / q.lines < 0.07);
}

/* Compares configurations that differ in one field. */
static void test_trends(void **state)
{
    (void)state;
    Line l = {"u4", 57344, 8192, 1, {64, 1, 4, 1, 2, 1, 1, 2, 0, 2, 0, 0}, 0};
    double us = model(&l);
    l.config.per_sm = 1;
    assert_true(model(&l) > us);        /* a block of two that fit */
    l.config.per_sm = 2;
    l.m = 64;
    assert_true(model(&l) > 7 * us);    /* eight tiles, one after the other */
    Line narrow = {"u2", 57344, 8192, 1, {64, 1, 4, 1, 2, 1, 1, 2, 0, 2, 0, 0}, 0};
    assert_true(model(&narrow) < us);
    Line shared = {"u1", 5120, 27648, 1, {64, 1, 4, 2, 4, 1, 1, 2, 0, 3, 0, 0}, 0};
    assert_true(model(&shared) > 15);   /* five blocks put a tile together: 18.7 us measured */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_choices),
                                       cmocka_unit_test(test_trends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
