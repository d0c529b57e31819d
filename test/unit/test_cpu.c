/* The CPU engine's machine: helpers called by C functions in place of compiled code,
 * against the formulas of the PTX ISA; barriers, faults, memory between guards; runs
 * through the public function. */
#define _GNU_SOURCE
#include "cpu/machine.h"

#include <errno.h>
#include <fenv.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "cpu_threads.h"
#include "tilus/runtime.h"

/* Threads report here what they found. */
static uint64_t seen[256][9];

static uint32_t lane(void)
{
    return this_thread()->number % LANES;
}

/* Runs `entry` in each of so many threads; the fault, or one that was not found. */
static Fault run_threads(Entry *entry, unsigned threads, const MmaPlaces *mma)
{
    Machine m = {.entry = entry, .thread_count = threads, .shared_bytes = 4096, .mma = mma};
    memset(seen, 0, sizeof seen);
    return run_block(&m);
}

static void run_well(Entry *entry, unsigned threads, const MmaPlaces *mma)
{
    assert_runs(run_threads(entry, threads, mma));
}

static void expect_fault(Entry *entry, unsigned threads, const char *part)
{
    assert_fault(run_threads(entry, threads, NULL), part);
}

/* ---- shuffles ------------------------------------------------------------ */

static void shuffle_all(const uint64_t *unused)
{
    (void)unused;
    Thread *t = this_thread();
    for (uint64_t xor = 0; xor < 4; xor++) {
        const uint64_t args[] = {UINT32_MAX, 100 + t->number, UINT64_C(1) << xor, 31};
        cpu_shuffle_xor(args, &seen[t->number][xor]);
    }
    const uint64_t halves[] = {UINT32_MAX, t->number, 16, 16 << 8 | 15};
    cpu_shuffle_xor(halves, &seen[t->number][4]);
    const uint64_t up[] = {UINT32_MAX, t->number, 3, 0};
    cpu_shuffle_up(up, &seen[t->number][5]);
    const uint64_t up_halves[] = {UINT32_MAX, t->number, 3, 16 << 8};
    cpu_shuffle_up(up_halves, &seen[t->number][6]);
    const uint64_t index[] = {UINT32_MAX, t->number, 5 * t->number, 31};
    cpu_shuffle_index(index, &seen[t->number][7]);
    const uint64_t index_halves[] = {UINT32_MAX, t->number, 5 * t->number, 16 << 8 | 15};
    cpu_shuffle_index(index_halves, &seen[t->number][8]);
}

/* Of segments of 16 lanes, a lane beyond the segment gives the own value. */
static void test_shuffle(void **state)
{
    (void)state;
    run_well(shuffle_all, 64, NULL);
    for (unsigned t = 0; t < 64; t++) {
        for (unsigned xor = 0; xor < 4; xor++)
            assert_int_equal(seen[t][xor], 100 + (t ^ 1u << xor));
        assert_int_equal(seen[t][4], t % LANES < 16 ? t : t - 16);
        assert_int_equal(seen[t][5], t % LANES < 3 ? t : t - 3);
        assert_int_equal(seen[t][6], t % 16 < 3 ? t : t - 3);
        assert_int_equal(seen[t][7], t / LANES * LANES + 5 * t % LANES);
        assert_int_equal(seen[t][8], t / 16 * 16 + 5 * t % 16);
    }
}

static void redux_all(const uint64_t *unused)
{
    (void)unused;
    Thread *t = this_thread();
    uint64_t v = t->number % LANES * UINT32_C(0x08000001), all = UINT32_MAX;
    Helper *helpers[] = {cpu_redux_add, cpu_redux_and, cpu_redux_or, cpu_redux_smax,
                         cpu_redux_smin, cpu_redux_umax, cpu_redux_umin};
    for (unsigned i = 0; i < sizeof helpers / sizeof *helpers; i++) {
        const uint64_t args[] = {i == 1 ? v | 4 : v, all};
        helpers[i](args, &seen[t->number][i]);
    }
}

/* Lane l has l in its high and its low five bits. */
static void test_redux(void **state)
{
    (void)state;
    run_well(redux_all, 64, NULL);
    for (unsigned t = 0; t < 64; t++) {
        assert_int_equal(seen[t][0], (uint32_t)(496u * 0x08000001u));
        assert_int_equal(seen[t][1], 4);
        assert_int_equal(seen[t][2], 0xF800001F);
        assert_int_equal(seen[t][3], 0x7800000F);
        assert_int_equal(seen[t][4], 0x80000010);
        assert_int_equal(seen[t][5], 0xF800001F);
        assert_int_equal(seen[t][6], 0);
    }
}

/* ---- matrices ------------------------------------------------------------ */

/* Element (row, column) of matrix i in shared memory, rows 16 bytes apart. */
static uint16_t number(unsigned i, unsigned row, unsigned column)
{
    return (uint16_t)(i * 1000 + row * 10 + column);
}

static unsigned char *row_address(unsigned i, unsigned row)
{
    return cpu_worker->shared.data + 16 * (8 * i + row);
}

static void fill_matrices(void)
{
    for (unsigned i = 0; i < 4; i++)
        for (unsigned row = 0; row < 8; row++)
            for (unsigned column = 0; column < 8; column++) {
                uint16_t v = number(i, row, column);
                memcpy(row_address(i, row) + 2 * column, &v, sizeof v);
            }
}

static void load_matrices(const uint64_t *unused)
{
    (void)unused;
    if (lane() == 0)
        fill_matrices();
    const uint64_t args[] = {(uintptr_t)row_address(lane() / 8, lane() % 8)};
    cpu_warp_barrier(args, NULL);
    cpu_ldmatrix_x4(args, &seen[lane()][0]);
    cpu_ldmatrix_x4_trans(args, &seen[lane()][4]);
}

static void test_ldmatrix(void **state)
{
    (void)state;
    run_well(load_matrices, LANES, NULL);
    for (unsigned t = 0; t < LANES; t++)
        for (unsigned i = 0; i < 4; i++) {
            unsigned row = t / 4, column = 2 * (t % 4);
            uint32_t next = number(i, row, column + 1), below = number(i, column + 1, row);
            assert_int_equal(seen[t][i], number(i, row, column) | next << 16);
            assert_int_equal(seen[t][4 + i], number(i, column, row) | below << 16);
        }
}

/* Elements that stmatrix stores, ldmatrix of the same kind loads. */
static void store_matrices(const uint64_t *unused)
{
    (void)unused;
    const uint64_t at = (uintptr_t)row_address(lane() / 8, lane() % 8), shifted = at + 1024;
    const uint64_t plain[] = {at, lane(), lane() << 16, 7, lane() * 3};
    const uint64_t turned[] = {shifted, lane(), lane() << 16, 7, lane() * 3};
    cpu_stmatrix_x4(plain, NULL);
    cpu_stmatrix_x4_trans(turned, NULL);
    cpu_ldmatrix_x4(&at, &seen[lane()][0]);
    cpu_ldmatrix_x4_trans(&shifted, &seen[lane()][4]);
}

static void test_stmatrix(void **state)
{
    (void)state;
    run_well(store_matrices, LANES, NULL);
    for (unsigned t = 0; t < LANES; t++)
        for (unsigned i = 0; i < 8; i++)
            assert_int_equal(seen[t][i], i % 4 == 0   ? t
                                         : i % 4 == 1 ? t << 16
                                         : i % 4 == 2 ? 7
                                                      : t * 3);
}

static void misaligned_matrix(const uint64_t *unused)
{
    (void)unused;
    const uint64_t at = (uintptr_t)row_address(0, 0) + 2 * lane();
    cpu_ldmatrix_x4(&at, &seen[lane()][0]);
}

/* ---- mma ----------------------------------------------------------------- */

static int8_t byte_a[16][32], byte_b[32][8];

/* The four bytes of word `w` of this lane, by the manual's figures for m16n8k32. */
static uint64_t pack(unsigned w, bool is_b)
{
    unsigned group = lane() / 4, in_group = lane() % 4;
    uint32_t word = 0;
    for (unsigned i = 0; i < 4; i++) {
        unsigned k = 4 * in_group + i + (is_b ? w : w / 2) * 16;
        int8_t v = is_b ? byte_b[k][group] : byte_a[group + w % 2 * 8][k];
        word |= (uint32_t)(uint8_t)v << 8 * i;
    }
    return word;
}

static void multiply_bytes(const uint64_t *unused)
{
    (void)unused;
    const uint64_t args[] = {pack(0, false), pack(1, false), pack(2, false), pack(3, false),
                             pack(0, true), pack(1, true), lane(), 1, 2, UINT32_MAX};
    cpu_mma_i32_i8_i8(args, seen[lane()]);
}

static void test_mma(void **state)
{
    (void)state;
    tilus_diag *diag = tilus_diag_new();
    tilus_module *m = tilus_parse(diag, "empty", "tilus 1\n", 8, 1, NULL, 0);
    assert_non_null(m);
    for (unsigned i = 0; i < sizeof byte_a; i++)
        ((int8_t *)byte_a)[i] = (int8_t)(i * 37 - 100);
    for (unsigned i = 0; i < sizeof byte_b; i++)
        ((int8_t *)byte_b)[i] = (int8_t)(i * 91 + 5);
    run_well(multiply_bytes, LANES, mma_places(m));
    for (unsigned t = 0; t < LANES; t++)
        for (unsigned i = 0; i < 4; i++) {
            int32_t row = (int32_t)(t / 4 + i / 2 * 8), column = (int32_t)(t % 4 * 2 + i % 2);
            int32_t sum = i == 0 ? (int32_t)t : i == 3 ? -1 : (int32_t)i;
            for (unsigned k = 0; k < 32; k++)
                sum += byte_a[row][k] * byte_b[k][column];
            assert_int_equal((int32_t)seen[t][i], sum);
        }
    tilus_module_free(m);
    tilus_diag_free(diag);
}

/* ---- cp.async ------------------------------------------------------------ */

static uint32_t source[8];

/* Two groups: what is there before the wait for the first, after it, at the end. */
static void copy_groups(const uint64_t *unused)
{
    (void)unused;
    if (this_thread()->number > 0)
        return;
    uint32_t *shared = (uint32_t *)cpu_worker->shared.data;
    const uint64_t whole[] = {(uintptr_t)shared, (uintptr_t)source};
    const uint64_t part[] = {(uintptr_t)(shared + 4), (uintptr_t)(source + 4), 6};
    const uint64_t one_pending = 1, none_pending = 0;
    memset(shared, 0, 32);
    cpu_copy_16(whole, NULL);
    cpu_copy_commit(NULL, NULL);
    cpu_copy_16_of(part, NULL);
    cpu_copy_commit(NULL, NULL);
    cpu_copy_4(whole, NULL);            /* in no group: never there */
    memcpy(&seen[0], shared, 32);
    cpu_copy_wait(&one_pending, NULL);
    memcpy(&seen[1], shared, 32);
    source[0] = 99;
    cpu_copy_wait(&none_pending, NULL);
    memcpy(&seen[2], shared, 32);
}

static void test_copy_is_late(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 8; i++)
        source[i] = 0x01010101 * (i + 1);
    run_well(copy_groups, LANES, NULL);
    const uint32_t *before = (uint32_t *)&seen[0], *middle = (uint32_t *)&seen[1];
    const uint32_t *after = (uint32_t *)&seen[2];
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(before[i], 0);
        assert_int_equal(middle[i], i < 4 ? 0x01010101 * (i + 1) : 0);
        assert_int_equal(after[i], i < 5 ? 0x01010101 * (i + 1) : i == 5 ? 0x0606 : 0);
    }
}

/* ---- mbarriers ------------------------------------------------------------- */

/* Of the mbarrier in the first bytes of shared memory, behind which copies go. */
static uint64_t mbarrier(void)
{
    return (uintptr_t)cpu_worker->shared.data;
}

static void init_mbarrier(uint64_t arrivals)
{
    const uint64_t args[] = {mbarrier(), arrivals};
    cpu_mbarrier_init(args, NULL);
}

static void expect_bytes(uint64_t bytes)
{
    const uint64_t args[] = {mbarrier(), bytes};
    cpu_mbarrier_expect(args, NULL);
}

static void copy_bulk(uint64_t bytes)
{
    const uint64_t args[] = {mbarrier() + 16, (uintptr_t)source, bytes, mbarrier()};
    cpu_copy_bulk(args, NULL);
}

static void arrive(void)
{
    const uint64_t at = mbarrier();
    cpu_mbarrier_arrive(&at, NULL);
}

static uint64_t wait_for_parity(uint64_t parity)
{
    const uint64_t args[] = {mbarrier(), parity};
    uint64_t ended = 0;
    cpu_mbarrier_try_wait(args, &ended);
    return ended;
}

/* The bytes are those of the copy's begin, and there from the first wait on. The phase
 * before the first one has ended. */
static void bulk_copy(const uint64_t *unused)
{
    (void)unused;
    const uint32_t *target = (uint32_t *)(cpu_worker->shared.data + 16);
    if (this_thread()->number == 0)
        init_mbarrier(1);
    cpu_barrier(&(uint64_t){0}, NULL);
    if (this_thread()->number == 1) {
        wait_for_parity(0);
        memcpy(&seen[1], target, 16);
    }
    if (this_thread()->number > 0)
        return;
    wait_for_parity(1);
    expect_bytes(16);
    copy_bulk(16);
    source[0] = 99;
    arrive();
    memcpy(&seen[0], target, 16);
    wait_for_parity(0);
}

static void test_bulk_copy_is_late(void **state)
{
    (void)state;
    source[0] = 7;
    run_well(bulk_copy, LANES, NULL);
    assert_int_equal((uint32_t)seen[0][0], UINT32_MAX);
    assert_int_equal((uint32_t)seen[1][0], 7);
}

static bool is_first(void)
{
    return this_thread()->number == 0;
}

static void arrive_nowhere(const uint64_t *unused)
{
    (void)unused;
    arrive();
}

/* The phase waits for bytes, which its last arrival must not overtake. */
static void arrive_twice(const uint64_t *unused)
{
    (void)unused;
    if (!is_first())
        return;
    init_mbarrier(1);
    expect_bytes(16);
    arrive();
    arrive();
}

static void copy_too_much(const uint64_t *unused)
{
    (void)unused;
    if (!is_first())
        return;
    init_mbarrier(1);
    expect_bytes(16);
    copy_bulk(32);
}

static void expect_too_much(const uint64_t *unused)
{
    (void)unused;
    if (!is_first())
        return;
    init_mbarrier(1);
    expect_bytes(1 << 19);
    expect_bytes(1 << 19);
}

static void wait_for_bytes(const uint64_t *unused)
{
    (void)unused;
    if (!is_first())
        return;
    init_mbarrier(1);
    expect_bytes(16);
    arrive();
    wait_for_parity(0);
}

static void test_mbarrier_faults(void **state)
{
    (void)state;
    expect_fault(arrive_nowhere, LANES, "there is no mbarrier at the address");
    expect_fault(arrive_twice, LANES, "an arrival at an mbarrier whose phase had all of its "
                 "1");
    expect_fault(copy_too_much, LANES, "a bulk copy of 32 bytes: they must be a multiple of "
                 "16, and the mbarrier expects 16");
    expect_fault(expect_too_much, LANES, "waits for 1048576 bytes, it can for 1048575");
    expect_fault(wait_for_bytes, LANES, "waiting here in tilus.mbarrier.try_wait");
}

/* ---- barriers ------------------------------------------------------------ */

static unsigned order[3];

/* Warps 0 and 1 wait at a barrier of their own, all four at the block's. */
static void named_barriers(const uint64_t *unused)
{
    (void)unused;
    const uint64_t group[] = {3, 64}, all = 0;
    order[0]++;
    if (this_thread()->number < 64) {
        cpu_group_barrier(group, NULL);
        seen[this_thread()->number][0] = order[0];
        order[1]++;
    }
    cpu_barrier(&all, NULL);
    seen[this_thread()->number][1] = order[1];
}

static void test_barriers(void **state)
{
    (void)state;
    memset(order, 0, sizeof order);
    run_well(named_barriers, 128, NULL);
    for (unsigned t = 0; t < 128; t++) {
        assert_true(t >= 64 || seen[t][0] >= 64);
        assert_int_equal(seen[t][1], 64);
    }
}

static void leave_one_out(const uint64_t *unused)
{
    (void)unused;
    const uint64_t all = 0;
    if (this_thread()->number != 40)
        cpu_barrier(&all, NULL);
}

static void half_a_warp(const uint64_t *unused)
{
    (void)unused;
    const uint64_t args[] = {UINT32_MAX, 0, 1, 31};
    if (lane() < 16)
        cpu_shuffle_xor(args, seen[lane()]);
    else
        cpu_warp_barrier(args, NULL);
}

static void two_places(const uint64_t *unused)
{
    (void)unused;
    const uint64_t all = 0;
    this_thread()->place = place_of((Loc){.line = 5 + lane() % 2, .column = 1});
    cpu_barrier(&all, NULL);
}

static void spin(const uint64_t *unused)
{
    (void)unused;
    static uint32_t semaphore;
    const uint64_t at = (uintptr_t)&semaphore, all = 0;
    while (this_thread()->number == 0) {
        cpu_load_acquire_gpu(&at, seen[0]);
        if (seen[0][0] == 1)
            break;
    }
    cpu_barrier(&all, NULL);
}

static void past_shared(const uint64_t *unused)
{
    (void)unused;
    const uint64_t args[] = {(uintptr_t)cpu_worker->shared.data + 4096, 1};
    cpu_atomic_or_shared(args, NULL);
}

static void test_faults(void **state)
{
    (void)state;
    expect_fault(leave_one_out, 64, "threads 0..39, 41..63 of block (0): waiting here in "
                 "tilus.barrier for threads that do not come");
    expect_fault(half_a_warp, 32, "comes here to tilus.warp_barrier, other threads "
                 "that take part do not");
    expect_fault(two_places, 32, "thread 1 of block (0) comes here to tilus.barrier");
    expect_fault(spin, 64, "the semaphore never gets the value that is waited for");
    expect_fault(past_shared, 32, "accesses shared memory at byte 4096, it has 4096 bytes");
    expect_fault(misaligned_matrix, 32, "an access of 16 bytes at an address that is not a "
                 "multiple of 16");
}

/* A program's frame of so many bytes, which each thread has, or thread 40 alone. */
static size_t frame;
static bool of_one_thread;

static void begin_with_frame(const uint64_t *unused)
{
    (void)unused;
    bool has = !of_one_thread || this_thread()->number == 40;
    volatile char *bytes = __builtin_alloca(has ? frame : 1);
    bytes[0] = 1;
    assert_ptr_equal(thread_begins(), &this_thread()->place);
}

/* A frame that leaves too little of the stack is a fault, whose thread has no guard below it. */
static void test_stack(void **state)
{
    (void)state;
    frame = 900 << 10;
    run_well(begin_with_frame, 64, NULL);
    frame = 1000 << 10;
    expect_fault(begin_with_frame, 64, "thread 0 of block (0) needs more stack than it has");
    of_one_thread = true;
    expect_fault(begin_with_frame, 64, "thread 40 of block (0) needs more stack than it has");
    frame = 1050 << 10;
    expect_fault(begin_with_frame, 64, "thread 40 of block (0) needs more stack than it has");
    of_one_thread = false;
    expect_fault(begin_with_frame, 64, "thread 0 of block (0) needs more stack than it has");
}

/* ---- memory -------------------------------------------------------------- */

static void test_slack(void **state)
{
    (void)state;
    Guarded g;
    assert_true(guarded_open(&g, "g", 100, 16, false));
    assert_int_equal((uintptr_t)g.data % 16, 0);
    memset(g.data, 1, 100);
    assert_true(guarded_overwritten(&g) == INT64_MIN);
    g.data[100] = 1;
    assert_int_equal(guarded_overwritten(&g), 100);
    g.data[-1] = 1;
    assert_int_equal(guarded_overwritten(&g), -1);
    guarded_close(&g);
}

/* Memory is refused when it is opened, not when it is first written, where the system counts what it
 * has given away. */
static void test_more_than_there_is(void **state)
{
    (void)state;
    Guarded g;
    int mode = 1;
    FILE *in = fopen("/proc/sys/vm/overcommit_memory", "re");
    bool known = in && fscanf(in, "%d", &mode) == 1;
    if (in)
        fclose(in);
    if (!known || mode == 1)
        skip();                     /* it promises anything */
    assert_false(guarded_open(&g, "g", (size_t)1 << 45, 16, false));
    assert_int_equal(g.error, ENOMEM);
    guarded_close(&g);
}

/* ---- the public function ------------------------------------------------- */

static const char text[] =
    "tilus 1\n"
    "program @square<%n>(%x: ptr<i32>, %n: i32 {range = [0, 1000]}) warps(1) {\n"
    "  %i = block_indices\n"
    "  %g = view_global %x : i32[%n, 32]\n"
    "  %v = load_global %g[%i, 0] : i32[32] @ spatial(32)\n"
    "  %w = mul %v, %v\n"
    "  store_global %w, %g[%i, 0]\n"
    "}\n";

enum { BLOCKS = 100 };

static tilus_status run_square(const tilus_cpu_options *options, int64_t blocks, int32_t *data,
                               size_t size)
{
    tilus_diag *diag = tilus_diag_new();
    tilus_module *m = tilus_parse(diag, "square", text, strlen(text), 1, NULL, 0);
    assert_non_null(m);
    const tilus_arg args[] = {{.pointer = 0}, {.integer = blocks}};
    const tilus_buffer buffer = {data, size};
    tilus_status status = tilus_run_on_cpu(m, "square", args, 2, &buffer, 1, options, NULL);
    assert_int_equal(tilus_diag_errors(diag) > 0, status != TILUS_OK);
    tilus_module_free(m);
    tilus_diag_free(diag);
    return status;
}

static void test_run(void **state)
{
    (void)state;
    int32_t data[BLOCKS * 32];
    for (unsigned level = 0; level < 4; level++) {
        const tilus_cpu_options options = {.struct_size = sizeof options,
                                        .cpu = "sm_80", .opt_level = level,
                                           .host_threads = 3};
        for (int32_t i = 0; i < BLOCKS * 32; i++)
            data[i] = i;
        assert_int_equal(run_square(&options, BLOCKS, data, sizeof data), TILUS_OK);
        for (int32_t i = 0; i < BLOCKS * 32; i++)
            assert_int_equal(data[i], i * i);
        assert_int_equal(run_square(&options, BLOCKS, data, sizeof data - 4),
                         TILUS_ERROR_PROGRAM);
    }
    const tilus_cpu_options wrong = {.struct_size = sizeof wrong, .cpu = "sm_80", .opt_level = 4};
    assert_int_equal(run_square(&wrong, BLOCKS, data, sizeof data), TILUS_ERROR_ARGUMENT);
    const tilus_cpu_options unknown = {.struct_size = sizeof unknown, .cpu = "sm_81"};
    assert_int_equal(run_square(&unknown, BLOCKS, data, sizeof data), TILUS_ERROR_PROGRAM);
}

/* A grid of 0 blocks runs nothing, as on a device. */
static void test_no_blocks(void **state)
{
    (void)state;
    int32_t data[32] = {7};
    for (unsigned threads = 0; threads < 3; threads++) {
        const tilus_cpu_options options = {.struct_size = sizeof options, .cpu = "sm_80",
                                           .host_threads = threads, .check_races = true};
        assert_int_equal(run_square(&options, 0, data, sizeof data), TILUS_OK);
        assert_int_equal(data[0], 7);
    }
}

/* A thread that blocks all signals, as those of servers do, has faults reported all the same. */
static void test_blocked_signals(void **state)
{
    (void)state;
    int32_t data[BLOCKS * 32] = {0};
    sigset_t all, before, after;
    const tilus_cpu_options options = {.struct_size = sizeof options, .cpu = "sm_80",
                                       .host_threads = 2};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    tilus_status status = run_square(&options, BLOCKS, data, sizeof data - 4);
    pthread_sigmask(SIG_SETMASK, &before, &after);
    assert_int_equal(status, TILUS_ERROR_PROGRAM);
    assert_true(sigismember(&after, SIGSEGV) && sigismember(&after, SIGFPE));
}

static const char float_text[] =
    "tilus 1\n"
    "program @cubes<4>(%x: ptr<f32>, %y: ptr<f64>) warps(1) {\n"
    "  %i = block_indices\n"
    "  %gx = view_global %x : f32[4, 32]\n"
    "  %gy = view_global %y : f64[4, 32]\n"
    "  %v = load_global %gx[%i, 0] : f32[32] @ spatial(32)\n"
    "  store_global %v * %v * %v, %gx[%i, 0]\n"
    "  %w = load_global %gy[%i, 0] : f64[32] @ spatial(32)\n"
    "  store_global %w / 3.0, %gy[%i, 0]\n"
    "}\n";

enum { CUBES = 4 * 32 };

typedef struct Cubes {
    float x[CUBES];
    double y[CUBES];
} Cubes;

/* Numbers whose cubes and thirds no type holds exactly, some of them subnormal. */
static void fill_cubes(Cubes *c)
{
    for (int i = 0; i < CUBES; i++) {
        c->x[i] = (float)(i + 1) * 0x1.99999ap-46f;
        c->y[i] = (double)(i + 1) * 0x1.999999999999ap-1030;
    }
}

static void run_cubes(bool interpreted, const Cubes *given, Cubes *c)
{
    const tilus_cpu_options options = {.struct_size = sizeof options, .cpu = "sm_80",
                                       .host_threads = 2};
    tilus_diag *diag = tilus_diag_new();
    tilus_module *m = tilus_parse(diag, "cubes", float_text, strlen(float_text), 1, NULL, 0);
    assert_non_null(m);
    memcpy(c, given, sizeof *c);
    const tilus_arg args[] = {{.pointer = 0}, {.pointer = 1}};
    const tilus_buffer buffers[] = {{c->x, sizeof c->x}, {c->y, sizeof c->y}};
    tilus_status status = interpreted
        ? tilus_interpret(m, "cubes", args, 2, buffers, 2, NULL)
        : tilus_run_on_cpu(m, "cubes", args, 2, buffers, 2, &options, NULL);
    assert_int_equal(status, TILUS_OK);
    tilus_module_free(m);
    tilus_diag_free(diag);
}

/* The host's rounding, and its flushing of subnormal numbers, are not the program's. */
static void test_environment(void **state)
{
    (void)state;
    Cubes given, expected, upward, flushed;
    fill_cubes(&given);
    for (int interpreted = 0; interpreted < 2; interpreted++) {
        run_cubes(interpreted, &given, &expected);
        assert_true(expected.x[0] > 0 && expected.y[0] > 0);
        fesetround(FE_UPWARD);
        run_cubes(interpreted, &given, &upward);
        int round = fegetround();
        fesetround(FE_TONEAREST);
        assert_int_equal(round, FE_UPWARD);
        assert_memory_equal(expected.y, upward.y, sizeof upward.y);
        assert_memory_equal(expected.x, upward.x, sizeof upward.x);
#ifdef __SSE2__
        enum { FLUSHES = 0x8040 };
        __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | FLUSHES);
        run_cubes(interpreted, &given, &flushed);
        unsigned control = __builtin_ia32_stmxcsr();
        __builtin_ia32_ldmxcsr(control & ~(unsigned)FLUSHES);
        assert_int_equal(control & FLUSHES, FLUSHES);
        assert_memory_equal(expected.y, flushed.y, sizeof flushed.y);
        assert_memory_equal(expected.x, flushed.x, sizeof flushed.x);
#else
        (void)flushed;
#endif
    }
}

static const char shift_text[] =
    "tilus 1\n"
    "program @shift<1>(%x: ptr<i32> {align = 8}, %y: ptr<i32>, %z: ptr<i32>) warps(1) {\n"
    "  %gx = view_global %x : i32[32]\n"
    "  %gy = view_global %y : i32[32]\n"
    "  %gz = view_global %z : i32[32]\n"
    "  %v = load_global %gx[0] : i32[32] @ spatial(32)\n"
    "  synchronize\n"
    "  store_global %v, %gy[0]\n"
    "  synchronize\n"
    "  %w = load_global %gx[0] : i32[32] @ spatial(32)\n"
    "  store_global %w, %gz[0]\n"
    "}\n";

static tilus_status run_shift(int32_t *x, int32_t *y, int32_t *z)
{
    const tilus_cpu_options options = {.struct_size = sizeof options, .cpu = "sm_80"};
    tilus_diag *diag = tilus_diag_new();
    tilus_module *m = tilus_parse(diag, "shift", shift_text, strlen(shift_text), 1, NULL, 0);
    assert_non_null(m);
    const tilus_arg args[] = {{.pointer = 1}, {.pointer = 0}, {.pointer = 3}};
    const tilus_buffer buffers[] = {{y, 128}, {x, 128}, {x, 0}, {z, 128}};
    tilus_status status = tilus_run_on_cpu(m, "shift", args, 3, buffers, 4, &options, NULL);
    tilus_module_free(m);
    tilus_diag_free(diag);
    return status;
}

/* Reads from x what is written to y where they overlap, and copies it to z. */
static void test_overlap(void **state)
{
    (void)state;
    int32_t data[128];
    static const int y_at[] = {0, 2, 16, 31, 32};
    for (size_t c = 0; c < sizeof y_at / sizeof *y_at; c++) {
        for (int32_t i = 0; i < 128; i++)
            data[i] = i;
        int at = y_at[c];
        assert_int_equal(run_shift(data, data + at, data + 80), TILUS_OK);
        for (int32_t i = 0; i < 32; i++) {
            assert_int_equal(data[at + i], i);
            assert_int_equal(data[80 + i], i < at ? i : i - at);
        }
    }
    assert_int_equal(run_shift(data + 2, data, data + 80), TILUS_OK);
    assert_int_equal(run_shift(data + 1, data + 40, data + 80), TILUS_OK);
    assert_int_equal(run_shift(data + 1, data, data + 80), TILUS_ERROR_ARGUMENT);
}

/* ---- what a run takes, and gives back --------------------------------------------- */

static const char wide_text[] =
    "tilus 1\n"
    "program @wide<1>(%x: ptr<i32>) warps(32) {\n"
    "  %g = view_global %x : i32[1024]\n"
    "  %v = load_global %g[0] : i32[1024] @ spatial(1024)\n"
    "  synchronize\n"
    "  store_global %v + 1, %g[0]\n"
    "}\n";

static tilus_module *parse_well(tilus_diag *diag, const char *program)
{
    tilus_module *m = tilus_parse(diag, "test", program, strlen(program), 1, NULL, 0);
    const tilus_pass_options passes = {.struct_size = sizeof passes, .target = "sm_80"};
    assert_true(m && tilus_run_passes(m, NULL, &passes));
    return m;
}

static long count_mappings(void)
{
    long lines = 0;
    FILE *in = fopen("/proc/self/maps", "r");
    assert_non_null(in);
    for (int c; (c = getc(in)) != EOF;)
        lines += c == '\n';
    fclose(in);
    return lines;
}

enum { FEW_MAPPINGS = 64 };         /* of memory, and of LLVM */

static void count_running(void *most, int64_t done, int64_t total)
{
    (void)done, (void)total;
    long now = count_mappings();
    if (now > *(long *)most)
        *(long *)most = now;
}

/* A thread takes no mapping of its own: a system lets a process have 65530 of them. */
static void test_mappings_of_threads(void **state)
{
    (void)state;
    long before = count_mappings(), most = 0;
    int32_t data[1024] = {41};
    const tilus_arg arg = {.pointer = 0};
    const tilus_buffer buffer = {data, sizeof data};
    const tilus_cpu_options options = {.struct_size = sizeof options, .cpu = "sm_80",
                                       .progress = count_running, .watcher = &most};
    tilus_diag *diag = tilus_diag_new();
    tilus_module *m = parse_well(diag, wide_text);
    assert_int_equal(tilus_run_on_cpu(m, "wide", &arg, 1, &buffer, 1, &options, NULL), TILUS_OK);
    assert_int_equal(data[0], 42);
    assert_in_range(most, before, before + FEW_MAPPINGS);
    tilus_module_free(m);
    tilus_diag_free(diag);
}

/* @wide as a kernel of the engine. */
typedef struct Wide {
    tilus_diag *diag;
    tilus_module *module;
    tilus_artefact artefact;
    void *program;
    int32_t data[1024];
    char message[512];
} Wide;

static void open_wide(Wide *w)
{
    *w = (Wide){.diag = tilus_diag_new()};
    w->module = parse_well(w->diag, wide_text);
    w->artefact = (tilus_artefact){.info = tilus_module_kernel_info(w->module, "wide"),
                                   .target = "sm_80", .source = wide_text, .parameters = ""};
    const tilus_engine *engine = tilus_cpu_engine();
    assert_int_equal(engine->load(engine->data, &w->artefact, &w->program, w->message,
                                  sizeof w->message), TILUS_OK);
}

static tilus_status run_wide(Wide *w)
{
    const tilus_memory memory = {w->data, sizeof w->data};
    const tilus_arg arg = {.pointer = (uintptr_t)w->data};
    const tilus_engine_launch launch = {.struct_size = sizeof launch, .args = &arg, .arg_count = 1,
                                        .grid = {1, 1, 1}, .memory = &memory, .memory_count = 1};
    return tilus_cpu_engine()->run(w->program, &launch, w->message, sizeof w->message);
}

static void close_wide(Wide *w)
{
    tilus_cpu_engine()->unload(w->program);
    tilus_module_free(w->module);
    tilus_diag_free(w->diag);
}

/* Kernels that do not run keep their code alone. */
static void test_mappings_of_kernels(void **state)
{
    (void)state;
    enum { KERNELS = 8 };
    Wide all[KERNELS];
    long before = count_mappings();
    for (int i = 0; i < KERNELS; i++) {
        open_wide(&all[i]);
        for (int run = 0; run < 3; run++)
            assert_int_equal(run_wide(&all[i]), TILUS_OK);
        assert_int_equal(all[i].data[1023], 3);
    }
    assert_in_range(count_mappings(), 1, before + FEW_MAPPINGS);
    for (int i = 0; i < KERNELS; i++)
        close_wide(&all[i]);
}

/* Says of what there is no memory; goes on when there is again. */
static void test_no_address_space(void **state)
{
    (void)state;
#ifdef FIBER_ASAN
    skip();                         /* whose allocator needs address space, too */
#endif
    struct rlimit before, less;
    Wide w;
    open_wide(&w);
    assert_int_equal(run_wide(&w), TILUS_OK);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    less = before;
    less.rlim_cur = 1 << 20;
    assert_int_equal(setrlimit(RLIMIT_AS, &less), 0);
    tilus_status status = run_wide(&w);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(status, TILUS_ERROR_MEMORY);
    if (!strstr(w.message, "there is no memory for argument %x, 4096 bytes between guards: "))
        fail_msg("%s", w.message);
    assert_int_equal(run_wide(&w), TILUS_OK);
    close_wide(&w);
}

/* Takes all of the mappings that the system lets this process have: every second page of
 * `pages`, which it returns, has other rights. NULL: there are too many to do so. */
static unsigned char *take_mappings(size_t *size)
{
    enum { MOST = 1 << 17 };
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    *size = 2 * MOST * page;
    unsigned char *pages = mmap(NULL, *size, PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    for (size_t i = 0; i < MOST; i++)
        if (mprotect(pages + 2 * i * page, page, PROT_READ) != 0)
            return pages;
    munmap(pages, *size);
    return NULL;
}

static void test_no_mappings(void **state)
{
    (void)state;
#ifdef FIBER_ASAN
    skip();                         /* whose allocator needs mappings, too */
#endif
    size_t size;
    Wide w;
    open_wide(&w);
    assert_int_equal(run_wide(&w), TILUS_OK);
    unsigned char *pages = take_mappings(&size);
    if (pages) {
        tilus_status status = run_wide(&w);
        munmap(pages, size);
        assert_int_equal(status, TILUS_ERROR_MEMORY);
        if (!strstr(w.message, "mappings, and no more are allowed (vm.max_map_count)"))
            fail_msg("%s", w.message);
        assert_int_equal(run_wide(&w), TILUS_OK);
    }
    close_wide(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shuffle),
        cmocka_unit_test(test_redux),  cmocka_unit_test(test_ldmatrix),
        cmocka_unit_test(test_stmatrix), cmocka_unit_test(test_mma),
        cmocka_unit_test(test_bulk_copy_is_late),
        cmocka_unit_test(test_mbarrier_faults),
        cmocka_unit_test(test_copy_is_late), cmocka_unit_test(test_barriers),
        cmocka_unit_test(test_faults),   cmocka_unit_test(test_stack),
        cmocka_unit_test(test_slack),
        cmocka_unit_test(test_more_than_there_is),
        cmocka_unit_test(test_run),      cmocka_unit_test(test_no_blocks),
        cmocka_unit_test(test_blocked_signals), cmocka_unit_test(test_environment),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_mappings_of_threads),
        cmocka_unit_test(test_mappings_of_kernels),
        cmocka_unit_test(test_no_address_space),
        cmocka_unit_test(test_no_mappings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
