/* Products of big integers beside GMP: checks them, and measures both.
 *
 *     bigint_bench KERNELS check PAIRS SEED [METHOD]   random pairs, on the device and by GMP
 *     bigint_bench KERNELS check-sizes SEED BATCH A_BYTES B_BYTES ..   pairs of these sizes
 *     bigint_bench KERNELS time METHOD BATCH A_BYTES B_BYTES ..
 *                          microseconds; METHOD auto, schoolbook or transform
 *     bigint_bench - gmp BATCH A_BYTES B_BYTES ..      microseconds, on one core and on all
 *
 * KERNELS is a directory of artefacts; B_BYTES of 0 stands for squares. `time` gives the time of a product in a stream of many,
 * on one set of buffers. */
#define _GNU_SOURCE
#include <gmp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tilus/bigint.h"

enum { THREADS_MAX = 256 };

static tilus_rt *rt;
static tilus_bigint *bigint;

static void die(const char *what)
{
    fprintf(stderr, "bigint_bench: %s: %s\n", what, tilus_rt_error());
    exit(1);
}

#define OK(call) ((call) == TILUS_OK ? (void)0 : die(#call))

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t state = 1;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static void *allocate(size_t size)
{
    void *memory = malloc(size ? size : 1);
    if (!memory) {
        fprintf(stderr, "bigint_bench: no %zu bytes of memory\n", size);
        exit(1);
    }
    return memory;
}

/* ---- GMP ----------------------------------------------------------------- */

/* Pairs `first`, `first` + `step`, .. of a batch. */
typedef struct Share {
    const unsigned char *a, *b;
    unsigned char *c;           /* results, or with `wrong` what they are compared with */
    size_t na, nb, batch, first, step;
    bool compare;
    size_t wrong;               /* pairs whose products differ */
} Share;

static size_t to_limbs(mp_limb_t *to, const unsigned char *bytes, size_t size)
{
    size_t limbs = (size + sizeof *to - 1) / sizeof *to;
    to[limbs - 1] = 0;
    memcpy(to, bytes, size);
    return limbs;
}

static void *multiply_share(void *data)
{
    Share *s = data;
    mp_limb_t *x = allocate(s->na + 8), *y = allocate(s->nb + 8), *z = allocate(s->na + s->nb + 32);
    for (size_t i = s->first; i < s->batch; i += s->step) {
        size_t nx = to_limbs(x, s->a + i * s->na, s->na), ny = to_limbs(y, s->b + i * s->nb, s->nb);
        unsigned char *c = s->c + i * (s->na + s->nb);
        if (s->a == s->b)
            mpn_sqr(z, x, (mp_size_t)nx);
        else if (nx >= ny)
            mpn_mul(z, x, (mp_size_t)nx, y, (mp_size_t)ny);
        else
            mpn_mul(z, y, (mp_size_t)ny, x, (mp_size_t)nx);
        if (s->compare)
            s->wrong += memcmp(c, z, s->na + s->nb) != 0;
        else
            memcpy(c, z, s->na + s->nb);
    }
    free(x);
    free(y);
    free(z);
    return NULL;
}

/* Multiplies all pairs on `threads` threads; returns how many differ. */
static size_t multiply(const Share *all, size_t threads)
{
    pthread_t ids[THREADS_MAX];
    Share shares[THREADS_MAX];
    size_t wrong = 0;
    for (size_t i = 0; i < threads; i++) {
        shares[i] = *all;
        shares[i].first = i;
        shares[i].step = threads;
        if (threads == 1)
            multiply_share(&shares[i]);
        else if (pthread_create(&ids[i], NULL, multiply_share, &shares[i]) != 0)
            exit(1);
    }
    for (size_t i = 0; i < threads; i++) {
        if (threads > 1)
            pthread_join(ids[i], NULL);
        wrong += shares[i].wrong;
    }
    return wrong;
}

static size_t cores(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > THREADS_MAX ? THREADS_MAX : (size_t)n;
}

/* ---- numbers ------------------------------------------------------------- */

/* Random bytes, mostly; also ones, zeros, single bits, and runs of ones among zeros. */
static void fill(unsigned char *to, size_t size)
{
    unsigned kind = (unsigned)(next_random() % 8);
    memset(to, kind == 1 ? 0xff : 0, size);
    if (kind == 3)
        to[next_random() % size] = (unsigned char)(1 << next_random() % 8);
    if (kind == 4) {
        size_t from = next_random() % size;
        memset(to + from, 0xff, 1 + next_random() % (size - from));
    }
    for (size_t i = 0; i < size && (kind == 0 || kind > 4); i++)
        to[i] = (unsigned char)(next_random() >> 32);
}

/* ---- the device ---------------------------------------------------------- */

static void open_device(const char *kernels)
{
    const tilus_bigint_options options = {.struct_size = sizeof options, .directory = kernels};
    char message[512];
    if (tilus_rt_open(NULL, &rt, message, sizeof message) != TILUS_OK) {
        fprintf(stderr, "bigint_bench: %s\n", message);
        exit(1);
    }
    OK(tilus_bigint_open(rt, &options, &bigint));
    printf("# %s, GMP %s, %zu cores\n", tilus_rt_device_name(rt, 0), gmp_version, cores());
}

/* Buffers that grow. */
typedef struct Buffer {
    uint64_t address;
    size_t size;
} Buffer;

static uint64_t at_least(Buffer *buffer, size_t size)
{
    if (buffer->size < size) {
        if (buffer->address)
            OK(tilus_rt_release(rt, 0, buffer->address));
        OK(tilus_rt_allocate(rt, 0, size, &buffer->address));
        buffer->size = size;
    }
    return buffer->address;
}

static tilus_bigint_plan *plan_of(const tilus_bigint_problem *p, tilus_bigint_call *call)
{
    static Buffer a, b, c, workspace;
    tilus_bigint_plan *plan;
    size_t batch = (size_t)p->batch;
    OK(tilus_bigint_plan_create(bigint, p, 0, &plan));
    OK(tilus_bigint_prepare(plan));
    *call = (tilus_bigint_call){.struct_size = sizeof *call};
    call->a = at_least(&a, batch * (size_t)p->a_bytes + 16);
    call->b = p->square ? 0 : at_least(&b, batch * (size_t)p->b_bytes + 16);
    call->c = at_least(&c, batch * (size_t)(p->a_bytes + p->b_bytes) + 16);
    call->workspace_size = tilus_bigint_workspace_size(plan);
    call->workspace = at_least(&workspace, call->workspace_size + 16);
    return plan;
}

/* ---- checking ------------------------------------------------------------ */

/* Returns a size, of any magnitude up to 2^log as likely as any other. */
static size_t random_size(unsigned log)
{
    size_t size = (size_t)1 << next_random() % (log + 1);
    size += next_random() % size;
    if (next_random() % 2)
        size = (size + 15) / 16 * 16;
    return size;
}

static tilus_bigint_problem random_problem(tilus_bigint_method method)
{
    tilus_bigint_problem p = {.struct_size = sizeof p, .method = method};
    bool large = next_random() % 16 == 0;
    p.a_bytes = (int64_t)random_size(large ? 22 : 13);
    p.b_bytes = next_random() % 4 ? (int64_t)random_size(large ? 22 : 13) : p.a_bytes;
    p.square = p.a_bytes == p.b_bytes && next_random() % 2;
    int64_t room = (large ? 16 << 20 : 1 << 20) / (p.a_bytes + p.b_bytes);
    p.batch = 1 + (int64_t)(next_random() % (uint64_t)(room > 200 ? 200 : room + 1));
    int64_t least = p.a_bytes < p.b_bytes ? p.a_bytes : p.b_bytes;
    if (method == TILUS_BIGINT_SCHOOLBOOK && least > 65536)
        p.method = TILUS_BIGINT_AUTO;
    return p;
}

/* Returns how many pairs of a random problem differ. */
static size_t check_one(const tilus_bigint_problem *p)
{
    size_t batch = (size_t)p->batch, na = (size_t)p->a_bytes, nb = (size_t)p->b_bytes;
    unsigned char *a = allocate(batch * na), *b = p->square ? a : allocate(batch * nb);
    unsigned char *c = allocate(batch * (na + nb));
    tilus_bigint_call call;
    tilus_bigint_plan *plan = plan_of(p, &call);
    for (size_t i = 0; i < batch; i++) {
        fill(a + i * na, na);
        if (b != a)
            fill(b + i * nb, nb);
    }
    OK(tilus_rt_upload(rt, 0, call.a, a, batch * na));
    if (b != a)
        OK(tilus_rt_upload(rt, 0, call.b, b, batch * nb));
    OK(tilus_rt_fill(rt, 0, call.c, 0xa5, batch * (na + nb)));
    OK(tilus_bigint_mul(plan, NULL, &call));
    OK(tilus_rt_download(rt, 0, c, call.c, batch * (na + nb)));
    const Share all = {.a = a, .b = b, .c = c, .na = na, .nb = nb, .batch = batch, .compare = true};
    size_t wrong = multiply(&all, batch * (na + nb) > 65536 ? cores() : 1);
    if (wrong) {
        char *text = tilus_bigint_describe(plan);
        printf("WRONG: %zu of %s", wrong, text);
        free(text);
    }
    tilus_bigint_plan_free(plan);
    free(a);
    if (b != a)
        free(b);
    free(c);
    return wrong;
}

static int check(size_t pairs, tilus_bigint_method method)
{
    size_t done = 0, wrong = 0, problems = 0;
    double start = seconds();
    while (done < pairs) {
        tilus_bigint_problem p = random_problem(method);
        wrong += check_one(&p);
        done += (size_t)p.batch;
        problems++;
    }
    printf("%zu pairs of %zu problems, %zu wrong, %.1f s\n", done, problems, wrong,
           seconds() - start);
    return wrong != 0;
}

/* ---- timing -------------------------------------------------------------- */

static double time_device(tilus_bigint_plan *plan, const tilus_bigint_call *call)
{
    double start, spent = 0;
    size_t count = 1;
    OK(tilus_bigint_mul(plan, NULL, call));
    OK(tilus_rt_synchronize(rt, 0));
    for (; spent < 0.02; count *= 4) {
        start = seconds();
        for (size_t i = 0; i < count; i++)
            OK(tilus_bigint_mul(plan, NULL, call));
        OK(tilus_rt_synchronize(rt, 0));
        spent = seconds() - start;
    }
    return spent / (double)(count / 4) * 1e6;
}

static void time_problem(const tilus_bigint_problem *p)
{
    tilus_bigint_call call;
    tilus_bigint_plan *plan = plan_of(p, &call);
    size_t na = (size_t)p->a_bytes, nb = (size_t)p->b_bytes, batch = (size_t)p->batch;
    size_t size = batch * (na > nb ? na : nb);
    unsigned char *bytes = allocate(size);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(next_random() >> 32);
    OK(tilus_rt_upload(rt, 0, call.a, bytes, batch * na));
    if (call.b)
        OK(tilus_rt_upload(rt, 0, call.b, bytes, batch * nb));
    char *text = tilus_bigint_describe(plan);
    printf("device %zu %zu %zu %.2f us  %s\n", batch, na, p->square ? 0 : nb,
           time_device(plan, &call), strchr(text, ':') + 2);
    free(text);
    free(bytes);
    tilus_bigint_plan_free(plan);
}

static void time_gmp(size_t batch, size_t na, size_t nb)
{
    bool square = nb == 0;
    nb = square ? na : nb;
    unsigned char *a = allocate(batch * na), *b = square ? a : allocate(batch * nb);
    unsigned char *c = allocate(batch * (na + nb));
    for (size_t i = 0; i < batch * na; i++)
        a[i] = (unsigned char)(next_random() >> 32);
    for (size_t i = 0; i < batch * nb && !square; i++)
        b[i] = (unsigned char)(next_random() >> 32);
    const Share all = {.a = a, .b = b, .c = c, .na = na, .nb = nb, .batch = batch};
    double times[2];
    for (int i = 0; i < 2; i++) {
        size_t threads = i == 0 ? 1 : batch < cores() ? batch : cores();
        double best = 1e30, spent = 0;
        for (int round = 0; round < 20 && (round == 0 || spent < 0.4); round++) {
            double start = seconds();
            multiply(&all, threads);
            double t = seconds() - start;
            best = t < best ? t : best;
            spent += t;
        }
        times[i] = best * 1e6;
    }
    printf("gmp %zu %zu %zu %.2f us on one core, %.2f us on %zu\n", batch, na,
           square ? 0 : nb, times[0], times[1], cores());
    free(a);
    if (!square)
        free(b);
    free(c);
}

static tilus_bigint_method method_of(const char *name)
{
    return !strcmp(name, "schoolbook") ? TILUS_BIGINT_SCHOOLBOOK
         : !strcmp(name, "transform") ? TILUS_BIGINT_TRANSFORM : TILUS_BIGINT_AUTO;
}

/* Returns the problem that three words say. */
static tilus_bigint_problem problem_of(char *const words[static 3], tilus_bigint_method method)
{
    int64_t na = atoll(words[1]), nb = atoll(words[2]);
    return (tilus_bigint_problem){.struct_size = sizeof(tilus_bigint_problem), .method = method,
                                  .a_bytes = na, .b_bytes = nb ? nb : na, .batch = atoll(words[0]),
                                  .square = nb == 0};
}

/* ---- commands: of the words behind their names ---------------------------- */

static int run_check(int count, char **words)
{
    state = strtoull(words[1], NULL, 0) * 2 + 1;
    return check(strtoul(words[0], NULL, 0), count > 2 ? method_of(words[2]) : TILUS_BIGINT_AUTO);
}

static int run_check_sizes(int count, char **words)
{
    int failed = 0;
    state = strtoull(words[0], NULL, 0) * 2 + 1;
    for (int i = 1; i + 2 < count; i += 3) {
        tilus_bigint_problem p = problem_of(words + i, TILUS_BIGINT_AUTO);
        double start = seconds();
        size_t wrong = check_one(&p);
        printf("%s x %s x %s: %zu wrong, %.1f s\n", words[i], words[i + 1], words[i + 2], wrong,
               seconds() - start);
        failed |= wrong != 0;
    }
    return failed;
}

static int run_time(int count, char **words)
{
    for (int i = 1; i + 2 < count; i += 3) {
        tilus_bigint_problem p = problem_of(words + i, method_of(words[0]));
        time_problem(&p);
    }
    return 0;
}

static int run_gmp(int count, char **words)
{
    for (int i = 0; i + 2 < count; i += 3)
        time_gmp(strtoul(words[i], NULL, 0), strtoul(words[i + 1], NULL, 0),
                 strtoul(words[i + 2], NULL, 0));
    return 0;
}

static const struct {
    const char *name, *arguments;
    int least;                  /* words */
    bool device;
    int (*run)(int count, char **words);
} commands[] = {
    {"check", "PAIRS SEED [METHOD]", 2, true, run_check},
    {"check-sizes", "SEED BATCH A_BYTES B_BYTES ..", 4, true, run_check_sizes},
    {"time", "METHOD BATCH A_BYTES B_BYTES ..", 4, true, run_time},
    {"gmp", "BATCH A_BYTES B_BYTES ..", 3, false, run_gmp},
};

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (argc < 3 + commands[i].least || strcmp(argv[2], commands[i].name) != 0)
            continue;
        if (commands[i].device)
            open_device(argv[1]);
        return commands[i].run(argc - 3, argv + 3);
    }
    fprintf(stderr, "usage:\n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fprintf(stderr, "  bigint_bench %s %s %s\n", commands[i].device ? "KERNELS" : "-",
                commands[i].name, commands[i].arguments);
    return 2;
}
