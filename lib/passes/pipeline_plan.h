/* Plans how the copies of a loop can run ahead of its computing.
 *
 *     iteration        0    1    2    3    ..          3 stages
 *     copies of   0 1  2    3    4    5                2 iterations ahead: early
 *     computes         0    1    2    3
 *
 * Each tensor that is copied into becomes a ring of as many tensors as there are
 * stages. That removes what orders a copy after the accesses of earlier iterations (WAR,
 * WAW); whatever else the dependences say must hold in the new order too.
 *
 * Copies that an mbarrier counts are started by a warp of their own, the producer, as soon as
 * the consumers release a tensor of the ring (pipeline_roles.c). */
#ifndef TILUS_PASSES_PIPELINE_PLAN_H
#define TILUS_PASSES_PIPELINE_PLAN_H

#include "memory/dependence.h"

/* On the module's scratch arena. Arrays of bool are by the numbers of the body's ops. */
typedef struct PipelinePlan {
    LoopDependences d;
    Completion completion;  /* of the copies: GROUP, or MBARRIER, which takes roles */
    bool *early;            /* a copy, or what one is made from */
    bool *dropped;          /* a group, a wait or a barrier that the new ones replace */
    Value **tensors;        /* that become rings */
    uint32_t tensor_count, tensor_capacity;
    bool guarded;           /* copies past the last iteration must not run; without it they
                               lie outside of their views, read nothing and give zeros, and
                               nothing that they are made from can fail */
    Value *mbarrier;        /* roles: what counts the copies; its one arrival and its one */
    Op *arrive, *wait;      /* wait, both of the loop's body */
    const Op *at;           /* when there is no plan: where, and why in words */
    const char *why;
    const char *cure;       /* a change of the text that removes the reason, or NULL */
} PipelinePlan;

/* Plans a `for` with at least 2 stages. False when it cannot be pipelined: then only
 * `at`, `why` and `cure` count. Numbers ops as loop_dependences does. */
bool pipeline_plan(Module *m, const Op *loop, PipelinePlan *plan);

#endif
