/* Fibers: stacks that one host thread switches between, in a few nanoseconds.
 *
 * A fiber that does not run is the address of what it saved on its own stack. A
 * fiber stays on the host thread that prepared it. */
#ifndef TILUS_CPU_FIBER_H
#define TILUS_CPU_FIBER_H

typedef void *Fiber;

/* A fiber that calls `entry(argument)`, which never returns, on the stack that ends
 * at `top` (a multiple of 16). */
Fiber fiber_prepare(void *top, void (*entry)(void *), void *argument);

/* Saves what runs in `*from` and goes on with `to`; returns when somebody switches
 * to `*from`. */
void fiber_switch(Fiber *from, Fiber to);

#endif
