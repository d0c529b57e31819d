/* Operations on words that casts are made of: what lib/cast says of them. */
#define _GNU_SOURCE
#include "cast/plan.h"
#include "cpu/machine.h"

#define CAST(id, table)                                                       \
    void cpu_##id(const uint64_t *args, uint64_t *results)                    \
    {                                                                         \
        const CastOp op = {.code = CAST_##id, .imm = table};                  \
        results[0] = cast_run_op(&op, (uint32_t)args[0], INPUT_##id);         \
    }

/* The inputs that follow the first one. */
#define INPUT_prmt (uint32_t)args[1], (uint32_t)args[2]
#define INPUT_lop3 INPUT_prmt
#define INPUT_mad INPUT_prmt
#define INPUT_pair_e4m3 INPUT_prmt
#define INPUT_from_e4m3 0, 0
#define INPUT_to_e4m3 0, 0
#define INPUT_to_e5m2 0, 0

CAST(prmt, 0)
CAST(lop3, (uint32_t)args[3])
CAST(mad, 0)
CAST(pair_e4m3, 0)
CAST(from_e4m3, 0)
CAST(to_e4m3, 0)
CAST(to_e5m2, 0)
