/* Switching stacks. A call saves what its ABI lets a function change; so only the
 * registers that a callee must keep go onto the stack, and its pointer into `saved`.
 * The system's own ucontext, which serves other machines, is fifty times slower: it
 * makes a system call. */
#define _GNU_SOURCE
#include "cpu/fiber.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef FIBER_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(__x86_64__)

/* A jump to the popped address instead of a return: the processor's stack of return
 * addresses is that of another fiber. */
__asm__(".text\n"
        ".globl tilus_fiber_switch\n"
        ".hidden tilus_fiber_switch\n"
        ".type tilus_fiber_switch, @function\n"
        "tilus_fiber_switch:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n"
        "    pushq %r13\n    pushq %r14\n    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n"
        "    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    popq %rcx\n"
        "    jmp *%rcx\n"
        ".size tilus_fiber_switch, . - tilus_fiber_switch\n"
        ".globl tilus_fiber_start\n"
        ".hidden tilus_fiber_start\n"
        ".type tilus_fiber_start, @function\n"
        "tilus_fiber_start:\n"
        "    movq %r12, %rdi\n"
        "    callq *%rbx\n"
        "    ud2\n"
        ".size tilus_fiber_start, . - tilus_fiber_start\n");

/* Words, from the lowest; two are above the start, where a return address would be. */
enum { SAVED = 9, FUNCTION = 4, ARGUMENT = 3, START = 6 };

#elif defined(__aarch64__)

__asm__(".text\n"
        ".globl tilus_fiber_switch\n"
        ".hidden tilus_fiber_switch\n"
        ".type tilus_fiber_switch, %function\n"
        "tilus_fiber_switch:\n"
        "    stp x19, x20, [sp, #-160]!\n"
        "    stp x21, x22, [sp, #16]\n    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n     stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n   stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x21, x22, [sp, #16]\n    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n     ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n   ldp d14, d15, [sp, #144]\n"
        "    ldp x19, x20, [sp], #160\n"
        "    br x30\n"
        ".size tilus_fiber_switch, . - tilus_fiber_switch\n"
        ".globl tilus_fiber_start\n"
        ".hidden tilus_fiber_start\n"
        ".type tilus_fiber_start, %function\n"
        "tilus_fiber_start:\n"
        "    mov x0, x20\n"
        "    blr x19\n"
        "    brk #1\n"
        ".size tilus_fiber_start, . - tilus_fiber_start\n");

enum { SAVED = 20, FUNCTION = 0, ARGUMENT = 1, START = 11 };

#else
#define TILUS_FIBER_UCONTEXT
#endif

#ifndef TILUS_FIBER_UCONTEXT

/* Hidden here, too: a compiler of position-independent code would read the address of a symbol
 * of default visibility from the GOT, whose entry on AArch64 is that of the section. */
__attribute__((visibility("hidden"))) void tilus_fiber_switch(void **from, void *to);
__attribute__((visibility("hidden"))) void tilus_fiber_start(void);

static void *prepare_stack(void *top, void (*entry)(void *), void *argument)
{
    uintptr_t *saved = (uintptr_t *)top - SAVED;
    for (unsigned i = 0; i < SAVED; i++)
        saved[i] = 0;
    saved[FUNCTION] = (uintptr_t)entry;
    saved[ARGUMENT] = (uintptr_t)argument;
    saved[START] = (uintptr_t)tilus_fiber_start;
    return saved;
}

static void switch_stacks(void **from, void *to)
{
    tilus_fiber_switch(from, to);
}

#else
#include <ucontext.h>

/* makecontext hands over ints only. */
typedef struct Start {
    ucontext_t context;
    void (*entry)(void *);
    void *argument;
} Start;

static void start(unsigned high, unsigned low)
{
    const Start *s = (const Start *)(((uintptr_t)high << 16 << 16) | low);
    s->entry(s->argument);
}

static void *prepare_stack(void *top, void (*entry)(void *), void *argument)
{
    enum { LEAST = 16384 };         /* of a stack, which makecontext wants to know */
    uintptr_t at = ((uintptr_t)top - sizeof(Start)) & ~(uintptr_t)63;
    Start *s = (Start *)at;
    s->entry = entry;
    s->argument = argument;
    getcontext(&s->context);
    s->context.uc_stack.ss_sp = (char *)s - LEAST;
    s->context.uc_stack.ss_size = LEAST;
    s->context.uc_link = NULL;
    makecontext(&s->context, (void (*)(void))start, 2, (unsigned)(at >> 16 >> 16),
                (unsigned)at);
    return &s->context;
}

static void switch_stacks(void **from, void *to)
{
    ucontext_t here;
    *from = &here;
    swapcontext(&here, to);
}

#endif

/* ---- AddressSanitizer ------------------------------------------------------ */

#ifdef FIBER_ASAN

/* The fiber left for the one that runs; NULL: it was left for good. */
static _Thread_local Fiber *left;

static void depart(Fiber *from, const Fiber *to)
{
    left = from;
    __sanitizer_start_switch_fiber(from ? &from->fake_stack : NULL, to->stack,
                                   to->stack_size);
}

/* Learns the stack of what was left: that of a host thread is not known before. */
static void arrive(const Fiber *f)
{
    const void *stack;
    size_t size;
    __sanitizer_finish_switch_fiber(f->fake_stack, &stack, &size);
    if (left) {
        left->stack = stack;
        left->stack_size = size;
    }
}

#else

static void depart(Fiber *from, const Fiber *to)
{
    (void)from, (void)to;
}

static void arrive(const Fiber *f)
{
    (void)f;
}

#endif

/* ---- fibers ---------------------------------------------------------------- */

static void begin(void *data)
{
    Fiber *f = data;
    arrive(f);
    f->entry(f->argument);
}

void fiber_prepare(Fiber *f, void *stack, size_t size, void (*entry)(void *), void *argument)
{
    *f = (Fiber){.entry = entry, .argument = argument, .stack = stack, .stack_size = size};
    f->saved = prepare_stack((char *)stack + size, begin, f);
}

void fiber_switch(Fiber *from, Fiber *to)
{
    depart(from, to);
    switch_stacks(&from->saved, to->saved);
    arrive(from);
}

void fiber_leave(Fiber *to)
{
    static _Thread_local void *nobody;
    depart(NULL, to);
    switch_stacks(&nobody, to->saved);
}

void fiber_jumped(Fiber *f)
{
    depart(NULL, f);
    arrive(f);
}
