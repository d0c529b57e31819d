/* The CPU engine's checks of accesses: C functions in place of compiled code report
 * theirs, and are told of races, of bytes that nobody wrote, of addresses that are not
 * aligned. Threads run in order, each until it waits, so every case here is one order
 * of many; what is found must not depend on it. */
#define _GNU_SOURCE
#include "cpu/instrument.h"
#include "cpu/jit.h"
#include "cpu/shadow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "cpu_threads.h"

enum { WARP0 = 0, WARP1 = 32, WARP2 = 64, SHARED = 1024 };

static Guarded buffer;
static const tilus_cpu_options checked = {.struct_size = sizeof checked, .check_races = true};

static Fault run(Entry *entry, unsigned threads)
{
    Machine m = {.entry = entry, .thread_count = threads, .shared_bytes = SHARED,
                 .options = &checked, .regions = &buffer, .region_count = buffer.base != NULL};
    return run_block(&m);
}

static void expect_well(Entry *entry)
{
    assert_runs(run(entry, 96));
}

static void expect_fault(Entry *entry, const char *part)
{
    assert_fault(run(entry, 96), part);
}

/* ---- what threads do ------------------------------------------------------- */

static bool is(unsigned thread)
{
    return this_thread()->number == thread;
}

static unsigned char *shared(unsigned byte)
{
    return cpu_worker->shared.data + byte;
}

static Place place_on(unsigned line)
{
    return place_of((Loc){.line = line, .column = 1});
}

/* From now on the thread is at an op of this line. */
static void at_line(unsigned line)
{
    this_thread()->place = place_on(line);
}

static void load(unsigned byte, unsigned bytes)
{
    shadow_access(ACCESS_READ, shared(byte), bytes, NULL);
}

static void store(unsigned byte, unsigned bytes, uint64_t value)
{
    shadow_access(ACCESS_WRITE, shared(byte), bytes, &value);
    memcpy(shared(byte), &value, bytes);
}

static void add(unsigned byte)
{
    const uint64_t args[] = {(uintptr_t)shared(byte), 1};
    cpu_atomic_add_u32_shared(args, NULL);
}

/* Some bits of a byte, as a store of an element below a byte. */
static void set_bits(unsigned byte, unsigned mask)
{
    unsigned shift = byte % 4 * 8;
    const uint64_t args[] = {(uintptr_t)shared(byte - byte % 4), (uint64_t)mask << shift};
    cpu_atomic_or_shared(args, NULL);
}

static void barrier(void)
{
    const uint64_t number = 0;
    cpu_barrier(&number, NULL);
}

/* Of warps 0 and 1. */
static void pair_barrier(void)
{
    const uint64_t args[] = {1, 64};
    cpu_group_barrier(args, NULL);
}

static void warp_barrier(void)
{
    const uint64_t all = UINT32_MAX;
    cpu_warp_barrier(&all, NULL);
}

/* The lanes wait for each other, but nothing is ordered. */
static void shuffle(void)
{
    uint64_t result;
    const uint64_t args[] = {UINT32_MAX, 0, 1, 31};
    cpu_shuffle_xor(args, &result);
}

/* ---- order ----------------------------------------------------------------- */

static void write_then_read(const uint64_t *unused)
{
    (void)unused;
    at_line(2);
    if (is(3))
        store(0, 4, 7);
    at_line(3);
    if (is(40))
        load(2, 1);
}

static void read_then_write(const uint64_t *unused)
{
    (void)unused;
    if (is(0))
        store(0, 4, 7);
    barrier();
    at_line(4);
    if (is(WARP0) || is(WARP1))
        load(0, 4);
    at_line(5);
    if (is(WARP1))
        store(0, 4, 8);
}

static void other_bytes(const uint64_t *unused)
{
    (void)unused;
    store(4 * this_thread()->number, 2, 1);
    store(4 * this_thread()->number + 2, 1, 1);
    load(4 * this_thread()->number, 2);
}

/* Both lanes read byte 0, but lane 0 alone the byte that it writes. */
static void own_byte(const uint64_t *unused)
{
    (void)unused;
    if (is(0))
        store(0, 4, 7);
    warp_barrier();
    if (is(0))
        load(0, 4);
    if (is(1))
        load(0, 1);
    shuffle();
    if (is(0))
        store(3, 1, 7);
}

/* The second read is of one byte only. */
static void read_parts(const uint64_t *unused)
{
    (void)unused;
    if (is(0))
        store(0, 4, 7);
    barrier();
    if (is(0))
        load(0, 4);
    warp_barrier();
    if (is(0))
        load(0, 1);
    if (is(WARP1))
        store(2, 1, 7);
}

static void barrier_between(const uint64_t *unused)
{
    (void)unused;
    for (unsigned i = 0; i < 4; i++) {
        store(4 * this_thread()->number, 4, i);
        barrier();
        load(4 * (95 - this_thread()->number), 4);
        barrier();
    }
}

static void test_block(void **state)
{
    (void)state;
    expect_fault(write_then_read, "race: thread 40 of block (0) reads byte 2 of shared "
                 "memory, thread 3 has written it, and no synchronize lies between");
    Fault f = run(write_then_read, 64);
    assert_int_equal(f.message.place, place_on(3));
    assert_int_equal(f.note_count, 1);
    assert_int_equal(f.notes[0].place, place_on(2));
    assert_string_equal(f.notes[0].text, "thread 3 has written it here");
    f = run(read_then_write, 64);
    assert_fault(f, "race: thread 32 of block (0) writes byte 0 of shared memory, thread 0 "
                    "has read it, and no synchronize lies between");
    assert_int_equal(f.notes[0].place, place_on(4));
    expect_well(other_bytes);
    expect_well(own_byte);
    expect_fault(read_parts, "thread 32 of block (0) writes byte 2 of shared memory, thread 0 has "
                 "read it");
    expect_well(barrier_between);
}

static void one_warp(bool ordered)
{
    if (is(0))
        store(0, 4, 1);
    if (ordered)
        warp_barrier();
    else
        shuffle();
    if (is(1))
        load(0, 4);
}

static void behind_warp_barrier(const uint64_t *unused)
{
    (void)unused;
    one_warp(true);
}

static void behind_shuffle(const uint64_t *unused)
{
    (void)unused;
    one_warp(false);
}

static void other_warp(const uint64_t *unused)
{
    (void)unused;
    if (is(0))
        store(0, 4, 1);
    warp_barrier();
    if (is(WARP1))
        load(0, 4);
}

static void test_warps(void **state)
{
    (void)state;
    expect_well(behind_warp_barrier);
    expect_fault(behind_shuffle, "thread 1 of block (0) reads byte 0");
    expect_fault(other_warp, "thread 32 of block (0) reads byte 0");
}

/* Warp 0 writes; a barrier of warps 0 and 1; warp `reader` reads. */
static void in_groups(unsigned reader, bool all)
{
    if (is(WARP0))
        store(0, 4, 1);
    if (this_thread()->number < 64)
        pair_barrier();
    if (all)
        barrier();
    if (is(reader))
        load(0, 4);
}

static void in_group(const uint64_t *unused)
{
    (void)unused;
    in_groups(WARP1, false);
}

static void not_in_group(const uint64_t *unused)
{
    (void)unused;
    in_groups(WARP2, false);
}

static void by_two_barriers(const uint64_t *unused)
{
    (void)unused;
    in_groups(WARP2, true);
}

static void test_groups(void **state)
{
    (void)state;
    expect_well(in_group);
    expect_fault(not_in_group, "thread 64 of block (0) reads byte 0");
    expect_well(by_two_barriers);
}

/* ---- one op of several threads ----------------------------------------------- */

/* Threads 0 and 32 store `value` of theirs in ops at these lines. */
static void store_twice(unsigned line, uint64_t value)
{
    at_line(is(WARP0) ? 2 : line);
    if (is(WARP0) || is(WARP1))
        store(4, 2, is(WARP0) ? 5 : value);
}

static void store_same(const uint64_t *unused)
{
    (void)unused;
    store_twice(2, 5);
}

static void store_different(const uint64_t *unused)
{
    (void)unused;
    store_twice(2, 5 | 1 << 8);
}

static void store_elsewhere(const uint64_t *unused)
{
    (void)unused;
    store_twice(3, 5);
}

/* The store of thread 0 is behind its own read; that of thread 32 is not. */
static void read_before_replicas(const uint64_t *unused)
{
    (void)unused;
    if (is(WARP0))
        store(4, 2, 1);
    barrier();
    if (is(WARP0))
        load(4, 2);
    store_twice(2, 5);
}

static void bits_of_one_op(const uint64_t *unused)
{
    (void)unused;
    at_line(2);
    set_bits(1, 1u << this_thread()->number % 8);
    barrier();
    at_line(3);
    load(1, 1);
}

static void bits_of_two_ops(const uint64_t *unused)
{
    (void)unused;
    at_line(is(WARP1) ? 3 : 2);
    if (is(WARP0) || is(WARP1))
        set_bits(1, is(WARP0) ? 0x0F : 0xF0);
}

static void bits_beside(const uint64_t *unused)
{
    (void)unused;
    if (is(WARP0))
        set_bits(1, 0x0F);
    if (is(WARP1))
        store(2, 1, 1);
}

static void test_one_op(void **state)
{
    (void)state;
    expect_well(store_same);
    expect_fault(store_different, "race: thread 32 of block (0) writes another value to byte "
                 "5 of shared memory than thread 0");
    expect_fault(store_elsewhere, "thread 32 of block (0) writes byte 4 of shared memory, "
                 "thread 0 has written it");
    expect_fault(read_before_replicas, "thread 32 of block (0) writes byte 4 of shared "
                 "memory, thread 0 has read it");
    expect_well(bits_of_one_op);
    expect_fault(bits_of_two_ops, "thread 32 of block (0) writes byte 1 of shared memory, "
                 "thread 0 has written it");
    expect_well(bits_beside);
}

/* ---- atomic operations --------------------------------------------------------- */

static void add_all(const uint64_t *unused)
{
    (void)unused;
    if (is(0))
        store(0, 4, 0);
    barrier();
    add(0);
    barrier();
    load(0, 4);
}

static void add_and_read(const uint64_t *unused)
{
    (void)unused;
    if (is(0))
        store(0, 4, 0);
    barrier();
    if (is(WARP0))
        add(0);
    if (is(WARP1))
        load(0, 1);
}

static void add_after_write(const uint64_t *unused)
{
    (void)unused;
    if (is(WARP0))
        store(0, 4, 0);
    add(0);
}

static void test_atomics(void **state)
{
    (void)state;
    expect_well(add_all);
    expect_fault(add_and_read, "thread 32 of block (0) reads byte 0 of shared memory, thread "
                 "0 has atomically changed it");
    expect_fault(add_after_write, "thread 1 of block (0) atomically changes byte 0 of shared "
                 "memory, thread 0 has written it");
}

/* ---- matrices --------------------------------------------------------------- */

/* Lane l stores row l, or has not yet when its warp moves matrices there. */
static void store_row(bool ordered)
{
    const uint64_t lane = this_thread()->number % LANES;
    uint64_t words[4];
    for (unsigned i = 0; i < 16 && is((unsigned)lane); i += 8)
        store((unsigned)(16 * lane + i), 8, lane);
    if (ordered)
        warp_barrier();
    const uint64_t address = (uintptr_t)shared((unsigned)(16 * lane));
    if (this_thread()->number < LANES)
        cpu_ldmatrix_x4(&address, words);
}

static void load_unordered(const uint64_t *unused)
{
    (void)unused;
    store_row(false);
}

static void load_ordered(const uint64_t *unused)
{
    (void)unused;
    store_row(true);
}

/* Two warps store the same matrices; or one of them others. */
static void store_matrices(unsigned different)
{
    const uint64_t lane = this_thread()->number % LANES;
    const uint64_t args[] = {(uintptr_t)shared((unsigned)(16 * (lane % 8))),
                             this_thread()->number == different ? 1 : 0};
    at_line(2);
    cpu_stmatrix_x1(args, NULL);
}

static void store_replicas(const uint64_t *unused)
{
    (void)unused;
    store_matrices(UINT32_MAX);
}

static void store_other_matrix(const uint64_t *unused)
{
    (void)unused;
    store_matrices(WARP1 + 5);
}

static void test_matrices(void **state)
{
    (void)state;
    expect_fault(load_unordered, "race: thread 1 of block (0) reads byte 0 of shared memory, "
                 "thread 0 has written it");
    expect_well(load_ordered);
    expect_well(store_replicas);
    expect_fault(store_other_matrix, "writes another value to byte 20 of shared memory than");
}

/* ---- copies ------------------------------------------------------------------- */

static void copy(unsigned to, unsigned from)
{
    const uint64_t args[] = {(uintptr_t)shared(to), (uintptr_t)(buffer.data + from)};
    cpu_copy_16(args, NULL);
    cpu_copy_commit(NULL, NULL);
}

static void wait_copies(uint64_t pending)
{
    cpu_copy_wait(&pending, NULL);
}

/* Thread 0 copies twice; `wait` leaves so many in flight, -1: none is waited for. */
static void copy_and_read(int wait, unsigned reader, bool ordered, unsigned byte)
{
    at_line(2);
    if (is(0)) {
        copy(0, 0);
        copy(16, 0);
    }
    if (wait >= 0)
        wait_copies((uint64_t)wait);
    if (ordered)
        barrier();
    at_line(3);
    if (is(reader))
        load(byte, 1);
    barrier();
    wait_copies(0);
}

static void copied(const uint64_t *unused)
{
    (void)unused;
    copy_and_read(0, 70, true, 31);
    copy_and_read(1, 0, true, 15);
}

static void copied_by_itself(const uint64_t *unused)
{
    (void)unused;
    copy_and_read(0, 0, false, 31);
}

/* The second copy is not the first, which has ended. */
static void copied_again(const uint64_t *unused)
{
    (void)unused;
    if (is(0)) {
        copy(0, 0);
        wait_copies(0);
        load(0, 4);
        copy(0, 0);
        load(0, 4);
    }
}

static void not_waited(const uint64_t *unused)
{
    (void)unused;
    copy_and_read(-1, 0, true, 0);
}

static void waited_too_little(const uint64_t *unused)
{
    (void)unused;
    copy_and_read(1, 70, true, 16);
}

static void not_synchronized(const uint64_t *unused)
{
    (void)unused;
    copy_and_read(0, 70, false, 16);
}

/* The target was read before, without a barrier. */
static void copied_over(const uint64_t *unused)
{
    (void)unused;
    if (is(0))
        store(16, 1, 1);
    barrier();
    if (is(70))
        load(16, 1);
    warp_barrier();
    if (is(0))
        copy(16, 0);
    wait_copies(0);
}

static void source_written(const uint64_t *unused)
{
    (void)unused;
    const uint32_t value = 0;
    if (is(0)) {
        copy(0, 0);
        shadow_access(ACCESS_WRITE, buffer.data + 8, sizeof value, &value);
    }
}

static void never_waited(const uint64_t *unused)
{
    (void)unused;
    at_line(2);
    if (is(5))
        copy(0, 0);
    at_line(3);
}

static void test_copies(void **state)
{
    (void)state;
    expect_well(copied);
    expect_well(copied_by_itself);
    expect_fault(copied_again, "race: thread 0 of block (0) reads byte 0 of shared memory, a "
                 "copy_async of thread 0 has written it, and no copy_async_wait_group");
    expect_fault(not_waited, "race: thread 0 of block (0) reads byte 0 of shared memory, a "
                 "copy_async of thread 0 has written it, and no copy_async_wait_group lies "
                 "between");
    expect_fault(waited_too_little, "thread 70 of block (0) reads byte 16 of shared memory, a "
                 "copy_async of thread 0 has written it, and no copy_async_wait_group lies "
                 "between");
    expect_fault(not_synchronized, "thread 70 of block (0) reads byte 16 of shared memory, a "
                 "copy_async of thread 0 has written it, and no synchronize lies between");
    expect_fault(copied_over, "race: a copy_async of thread 0 of block (0) writes byte 16 of "
                 "shared memory, thread 70 has read it, and no synchronize lies between");
    expect_fault(source_written, "thread 0 of block (0) writes byte 8 of the buffer, a "
                 "copy_async of thread 0 has read it, and no copy_async_wait_group lies "
                 "between");
    Fault f = run(never_waited, 32);
    assert_fault(f, "thread 5 of block (0) ends while this copy_async is in flight");
    assert_int_equal(f.message.place, place_on(2));
}

/* ---- global memory ------------------------------------------------------------- */

static void write_buffer(bool ordered)
{
    const uint64_t value = 1;
    if (is(WARP1))
        shadow_access(ACCESS_WRITE, buffer.data + 3, 2, &value);
    if (ordered)
        barrier();
    if (is(WARP2))
        shadow_access(ACCESS_READ, buffer.data, 8, NULL);
    shadow_access(ACCESS_READ, buffer.data + buffer.size - 2, 16, NULL);
    shadow_access(ACCESS_WRITE, buffer.data + buffer.size, 1, &value);
}

static void global_race(const uint64_t *unused)
{
    (void)unused;
    write_buffer(false);
}

static void global_order(const uint64_t *unused)
{
    (void)unused;
    write_buffer(true);
}

static void test_global(void **state)
{
    (void)state;
    expect_fault(global_race, "thread 64 of block (0) reads byte 3 of the buffer, thread 32 "
                 "has written it, and no synchronize lies between");
    expect_well(global_order);
}

/* ---- bytes that nobody wrote -------------------------------------------------- */

static void read_early(bool write)
{
    at_line(2);
    if (is(0))
        load(0, 4);
    at_line(3);
    if (write && is(WARP1))
        store(2, 2, 1);
    barrier();
    cpu_trap(NULL, NULL);
}

static void never_written(const uint64_t *unused)
{
    (void)unused;
    read_early(false);
}

static void written_too_late(const uint64_t *unused)
{
    (void)unused;
    read_early(true);
}

static void never_written_at_end(const uint64_t *unused)
{
    (void)unused;
    if (is(9)) {
        store(4, 1, 1);
        load(3, 2);
    }
}

static void written_in_parts(const uint64_t *unused)
{
    (void)unused;
    const uint64_t exchange[] = {(uintptr_t)shared(12), 1};
    uint64_t old;
    if (is(0)) {
        store(0, 4, 1);
        set_bits(4, 1);
        store(5, 8, 1);
        copy(16, 0);
        wait_copies(0);
        cpu_atomic_exch_b32_shared(exchange, &old);
        load(0, 8);
        load(8, 8);
        load(16, 16);
    }
}

static void add_to_nothing(const uint64_t *unused)
{
    (void)unused;
    add(0);
}

static void test_undefined(void **state)
{
    (void)state;
    Fault f = run(never_written, 64);
    assert_fault(f, "thread 0 of block (0) reads byte 0 of shared memory, which was never "
                    "written");
    assert_int_equal(f.message.place, place_on(2));
    f = run(written_too_late, 64);
    assert_fault(f, "race: thread 32 of block (0) writes byte 2 of shared memory, thread 0 "
                    "has read it");
    assert_int_equal(f.message.place, place_on(3));
    expect_fault(never_written_at_end, "thread 9 of block (0) reads byte 3 of shared memory, "
                 "which was never written");
    expect_well(written_in_parts);
    expect_fault(add_to_nothing, "thread 0 of block (0) reads byte 0 of shared memory, which "
                 "was never written");
}

/* The next block knows nothing of this one. */
static void test_blocks(void **state)
{
    (void)state;
    Machine m = {.entry = write_then_read, .thread_count = 32, .shared_bytes = SHARED,
                 .options = &checked};
    static const Program program = {.name = "test", .grid_rank = 1, .cluster = {1, 1, 1},
                                    .loc = {1, 1, 1}};
    Worker w;
    m.program = &program;
    m.grid[0] = m.grid[1] = m.grid[2] = m.cluster = 1;
    m.together[0] = m.together[1] = m.together[2] = 1;
    assert_true(worker_open(&w, &m));
    assert_true(signals_enter(&w));
    assert_true(worker_run_cluster(&w, 0));
    m.entry = written_in_parts;
    assert_true(worker_run_cluster(&w, 0));
    m.entry = never_written;
    assert_false(worker_run_cluster(&w, 0));
    assert_non_null(strstr(w.fault.message.text, "never written"));
    signals_leave(&w);
    worker_close(&w);
}

/* ---- compiled code ------------------------------------------------------------ */

/* void copy(from, to): 16 bytes from shared to global memory, and then the first 2 of
 * them, through a local of the thread. */
static void build_copy(Codegen *cg)
{
    LLVMBuilderRef b = cg->builder;
    LLVMTypeRef quad = LLVMVectorType(cg->i32, 4), none = LLVMVoidTypeInContext(cg->context);
    LLVMTypeRef types[] = {cg->shared_ptr, cg->global_ptr};
    LLVMValueRef f = LLVMAddFunction(cg->llvm, "copy", LLVMFunctionType(none, types, 2, 0));
    LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(cg->context, f, ""));
    LLVMValueRef from = LLVMGetParam(f, 0), to = LLVMGetParam(f, 1);
    LLVMValueRef wide = LLVMBuildLoad2(b, quad, from, "");
    LLVMValueRef local = LLVMBuildAlloca(b, quad, "");
    LLVMSetAlignment(wide, 16);
    LLVMBuildStore(b, wide, local);
    LLVMSetAlignment(LLVMBuildStore(b, LLVMBuildLoad2(b, quad, local, ""), to), 16);
    LLVMValueRef narrow = LLVMBuildLoad2(b, cg->i16, from, "");
    LLVMSetAlignment(narrow, 2);
    LLVMSetAlignment(LLVMBuildStore(b, narrow, to), 2);
    LLVMBuildRetVoid(b);
    instrument_accesses(cg, f);
}

static void (*compiled)(const void *from, void *to);
static unsigned from_byte, to_byte;

static void call_compiled(const uint64_t *unused)
{
    (void)unused;
    for (unsigned i = 0; i < 64 && is(0); i += 8)
        store(i, 8, UINT64_C(0x0101010101010101) * i);
    warp_barrier();
    if (is(5))
        compiled(shared(from_byte), buffer.data + to_byte);
}

static void expect_copy(unsigned from, unsigned to, const char *fault)
{
    from_byte = from;
    to_byte = to;
    Fault f = run(call_compiled, 32);
    if (fault)
        assert_fault(f, fault);
    else
        assert_runs(f);
}

static void test_compiled(void **state)
{
    (void)state;
    tilus_diag *diag = tilus_diag_new();
    tilus_module *m = tilus_parse(diag, "empty", "tilus 1\n", 8, 1, NULL, 0);
    assert_non_null(m);
    Codegen *cg = codegen_new(m);
    uintptr_t address;
    cg->machine = jit_machine(cg, 0);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(cg->machine);
    LLVMSetModuleDataLayout(cg->llvm, layout);
    lines_open(cg, LINES_NUMBERED);
    build_copy(cg);
    HostCode *code = jit_load(cg, 0, "copy", &address);
    assert_non_null(code);
    compiled = (void (*)(const void *, void *))address;
    expect_copy(16, 32, NULL);
    assert_int_equal(buffer.data[32], 16);
    assert_int_equal(buffer.data[47], 24);
    expect_copy(24, 32, "an access of 16 bytes at an address that is not a multiple of 16");
    expect_copy(16, 40, "an access of 16 bytes at an address that is not a multiple of 16");
    expect_copy(64, 32, "thread 5 of block (0) reads byte 64 of shared memory, which was "
                "never written");
    jit_unload(code);
    LLVMDisposeTargetData(layout);
    codegen_free(cg);
    tilus_module_free(m);
    tilus_diag_free(diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block),    cmocka_unit_test(test_warps),
        cmocka_unit_test(test_groups),   cmocka_unit_test(test_one_op),
        cmocka_unit_test(test_atomics),  cmocka_unit_test(test_matrices),
        cmocka_unit_test(test_copies),   cmocka_unit_test(test_global),
        cmocka_unit_test(test_undefined), cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_compiled),
    };
    if (!guarded_open(&buffer, "the buffer", 256, 16, false))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    guarded_close(&buffer);
    return failed;
}
