/* Waits of control flow for products of dot_async that read operand a from registers.
 *
 *     for %i in 0 .. %n drain(end) iter(%c = %zero) {
 *       %a = load_shared ..             registers that the product in flight might still read
 *       %p = dot_async %a, %b, %c
 *       yield %p
 *     }                                 wgmma.wait_group 0, before the next iteration
 *
 * ptxas keeps the registers of a until the wait for its group, but only in straight-line code:
 * across the back edge of a loop it gives them to the next fragments, without a remark. So no
 * group with a in registers is in flight where paths meet: before a for, while, if or
 * thread_group, and at the end of each of their regions, all groups are waited for when one may
 * be. Groups with a in shared memory stay in flight.
 *
 * Two exceptions. An `if` without products or control flow inside writes no such registers. And
 * a loop may leave a product in flight that ends before the next iteration computes its a:
 *
 *     for %i in 0 .. %n iter(%c = %zero, %d = %zero) {
 *       %a = load_shared ..
 *       %p = dot_async %a, %b, %c
 *       %r = dot_wait %d {pending = 1}  ends the product %q of the iteration before
 *       %e = load_shared ..             may have the registers of that one's a
 *       %q = dot_async %e, %b, %r
 *       %s = dot_wait %p {pending = 1}
 *       yield %s, %q
 *     }
 *
 * In the PTX all writes of these registers then come after the wait, and ptxas knows when
 * they are read. */
#ifndef TILUS_SELECT_DRAIN_H
#define TILUS_SELECT_DRAIN_H

#include "ir/ir.h"

typedef struct DrainPlan {
    bool before, end;           /* before the op; at the end of each region */
    const Op *product;          /* the newest one with a in registers that is waited for */
} DrainPlan;

#endif
