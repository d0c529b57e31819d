/* Reductions of bulk stores. */
#include "ir/reduction.h"

#include "support/text.h"

#include <assert.h>

static const bool takes[REDUCTION_NONE][DTYPE_COUNT] = {
#define REDUCES(op, dtype, ptx) [REDUCTION_##op][DTYPE_##dtype] = true,
#include "ir/reduction.def"
};

bool reduction_takes(Reduction r, DType t)
{
    return takes[r][t];
}

const char *reduction_types_text(Arena *arena, Reduction r)
{
    Text text;
    unsigned left = 0;
    text_init(&text, arena);
    for (DType t = 0; t < DTYPE_COUNT; t++)
        left += takes[r][t];
    for (DType t = 0; t < DTYPE_COUNT; t++)
        if (takes[r][t])
            text_printf(&text, "%s%s", !text.len ? "" : left == 1 ? " or " : ", ", dtype_name(t)),
                left--;
    return text_string(&text);
}

uint64_t reduction_combine(Reduction r, DType t, uint64_t before, uint64_t code)
{
    switch (r) {
    case REDUCTION_add: return dtype_add(t, before, code);
    case REDUCTION_min: return dtype_lesser(t, before, code);
    case REDUCTION_max: return dtype_greater(t, before, code);
    case REDUCTION_and: return dtype_and(t, before, code);
    case REDUCTION_or: return dtype_or(t, before, code);
    case REDUCTION_xor: return dtype_xor(t, before, code);
    case REDUCTION_NONE: break;
    }
    return code;
}
