/* Registers of a multiprocessor, shared by warps. */
#ifndef TILUS_REGISTER_SHARE_H
#define TILUS_REGISTER_SHARE_H

#include "support/integer.h"

/* A multiprocessor has four partitions, each with registers and every fourth warp of its own.
 * Registers come to a warp in eights a thread. ptxas goes by this rule, as
 * test/lit/codegen/setmaxnreg-ptxas.tilus shows. */
enum { PARTITIONS = 4, PARTITION_REGISTERS = 16 * 1024, REGISTER_STEP = 8 };

/* Returns the registers that each thread of `warps` warps of a multiprocessor may have. */
static inline int64_t register_share(int64_t warps)
{
    enum { LANES = 32 };
    int64_t most = ceil_div_i64(warps, PARTITIONS);
    return PARTITION_REGISTERS / (LANES * most) / REGISTER_STEP * REGISTER_STEP;
}

/* Returns the warps of a multiprocessor whose threads can have `registers` registers each. */
static inline int64_t register_warps(int64_t registers)
{
    enum { LANES = 32 };
    return PARTITIONS * (PARTITION_REGISTERS / (LANES * round_up_i64(registers, REGISTER_STEP)));
}

#endif
