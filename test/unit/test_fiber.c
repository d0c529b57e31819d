/* Fibers: what each of them knows stays its own, whoever runs meanwhile. Where
 * AddressSanitizer watches, it knows whose stack it sees: it looks for locals used after
 * their function has returned, and takes none for it that waits on another stack. */
#define _GNU_SOURCE
#include "cpu/fiber.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_stack_use_after_return=1";
}

enum { FIBERS = 3, STACK = 1 << 18, ROUNDS = 1000, LOCALS = 16 };

static Fiber host, fibers[FIBERS];
static void *stacks[FIBERS];

static void open_fibers(void (*entry)(void *))
{
    for (uintptr_t i = 0; i < FIBERS; i++) {
        stacks[i] = aligned_alloc(16, STACK);
        assert_non_null(stacks[i]);
        fiber_prepare(&fibers[i], stacks[i], STACK, entry, (void *)i);
    }
}

static void close_fibers(void)
{
    for (unsigned i = 0; i < FIBERS; i++)
        free(stacks[i]);
}

/* ---- switching ------------------------------------------------------------- */

static unsigned sums[FIBERS];

/* Adds numbers of its own, a turn each. */
static void count(void *argument)
{
    uintptr_t me = (uintptr_t)argument;
    volatile unsigned own[LOCALS];
    for (unsigned i = 0; i < LOCALS; i++)
        own[i] = (unsigned)me * i;
    for (unsigned round = 0; round < ROUNDS; round++) {
        sums[me] += own[round % LOCALS];
        fiber_switch(&fibers[me], me + 1 < FIBERS ? &fibers[me + 1] : &host);
    }
    fiber_leave(&host);
}

static void test_turns(void **state)
{
    (void)state;
    unsigned expected = 0;
    for (unsigned round = 0; round < ROUNDS; round++)
        expected += round % LOCALS;
    open_fibers(count);
    for (unsigned round = 0; round < ROUNDS; round++)
        fiber_switch(&host, &fibers[0]);
    for (unsigned i = 0; i < FIBERS; i++) {
        assert_int_equal(sums[i], i * expected);
        fiber_switch(&host, &fibers[i]);
    }
    close_fibers();
}

/* ---- jumps --------------------------------------------------------------------- */

static jmp_buf back;

static void jump(void *unused)
{
    (void)unused;
    longjmp(back, 1);
}

static void test_jump(void **state)
{
    (void)state;
    volatile unsigned before = 5;
    open_fibers(jump);
    if (!setjmp(back))
        fiber_switch(&host, &fibers[0]);
    fiber_jumped(&host);
    assert_int_equal(before, 5);
    close_fibers();
}

/* ---- AddressSanitizer ------------------------------------------------------------ */

/* Leaves an array of a size that is not known, and what AddressSanitizer put beside it. */
static __attribute__((noinline)) void jump_out(jmp_buf to, size_t size)
{
    volatile char own[size];
    own[0] = 1;
    longjmp(to, own[0]);
}

/* Writes where that array was; the compiler checks nothing here, memset does. */
static __attribute__((noinline, no_sanitize_address)) void clear_stack(void)
{
    char own[1 << 14];
    memset(own, 0, sizeof own);
    __asm__ volatile("" : : "r"(own) : "memory");
}

static void jump_within(void *unused)
{
    (void)unused;
    jmp_buf here;
    if (!setjmp(here))
        jump_out(here, 1000);
    clear_stack();
    fiber_leave(&host);
}

static void test_jump_within(void **state)
{
    (void)state;
    open_fibers(jump_within);
    fiber_switch(&host, &fibers[0]);
    close_fibers();
}

/* Its locals take the place of others that nobody needs. */
static __attribute__((noinline)) unsigned use_locals(unsigned seed)
{
    volatile unsigned own[LOCALS];
    for (unsigned i = 0; i < LOCALS; i++)
        own[i] = seed + i;
    return own[seed % LOCALS];
}

/* Keeps locals while others run, which jump within their stack: AddressSanitizer then
 * looks for frames that the jump has left, and this one's is not of them. */
static void keep(void *argument)
{
    uintptr_t me = (uintptr_t)argument;
    volatile unsigned own[LOCALS];
    jmp_buf here;
    for (unsigned i = 0; i < LOCALS; i++)
        own[i] = 0xAAAA0000 + (unsigned)me * LOCALS + i;
    fiber_switch(&fibers[me], &host);
    if (!setjmp(here))
        longjmp(here, 1);
    for (unsigned i = 0; i < 100000; i++)
        sums[me] += use_locals(i);
    fiber_switch(&fibers[me], &host);
    for (unsigned i = 0; i < LOCALS; i++)
        assert_int_equal(own[i], 0xAAAA0000 + (unsigned)me * LOCALS + i);
    fiber_leave(&host);
}

static void test_locals_stay(void **state)
{
    (void)state;
    open_fibers(keep);
    for (unsigned turn = 0; turn < 3; turn++)
        for (unsigned i = 0; i < FIBERS; i++)
            fiber_switch(&host, &fibers[i]);
    close_fibers();
}

static unsigned *volatile escaped;

static __attribute__((noinline)) void let_escape(void)
{
    unsigned own[LOCALS] = {1};
    escaped = own;
}

static void use_after_return(void *unused)
{
    (void)unused;
    let_escape();
    sums[0] = escaped[0];
    fiber_leave(&host);
}

/* In a process of its own, which it ends. */
static void test_use_after_return(void **state)
{
    (void)state;
#ifdef FIBER_ASAN
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        open_fibers(use_after_return);
        fiber_switch(&host, &fibers[0]);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
#else
    (void)use_after_return;
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_jump),
        cmocka_unit_test(test_jump_within),
        cmocka_unit_test(test_locals_stay),
        cmocka_unit_test(test_use_after_return),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
