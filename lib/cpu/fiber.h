/* Fibers: stacks that one host thread switches between, in a few nanoseconds.
 *
 * A fiber stays on the host thread that prepared it. AddressSanitizer is told of every
 * switch, so that it knows whose stack it watches. */
#ifndef TILUS_CPU_FIBER_H
#define TILUS_CPU_FIBER_H

#include <stddef.h>

/* gcc says it by a macro, clang by a question, which LLVM's headers answer for gcc. */
#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN
#endif
#endif

/* A fiber that does not run, or the host thread's own stack while it runs fibers: then
 * nobody prepares it. */
typedef struct Fiber {
    void *saved;                /* where on its own stack its registers are */
    void (*entry)(void *);
    void *argument;
    const void *stack;          /* its lowest byte and its size: of what nobody */
    size_t stack_size;          /* prepared, known to AddressSanitizer only */
    void *fake_stack;           /* AddressSanitizer's, of locals it watches */
} Fiber;

/* Makes `*f` one that calls `entry(argument)`, which never returns, on the `size` bytes
 * from `stack` on, which end at a multiple of 16. */
void fiber_prepare(Fiber *f, void *stack, size_t size, void (*entry)(void *), void *argument);

/* Saves what runs in `*from` and goes on with `*to`; returns when somebody switches to
 * `*from`. */
void fiber_switch(Fiber *from, Fiber *to);
/* Goes on with `*to`; what runs never goes on. */
void fiber_leave(Fiber *to);

/* `*f` goes on, by a jump out of another fiber, which never does. */
void fiber_jumped(Fiber *f);

#endif
