/* Deferred power-of-two scales of storage orders, by plans. Packing needs none, so a library
 * that only packs has storage.c alone. */
#include "cast/plan.h"
#include "types/storage.h"

bool cast_exponents(Arena *arena, DType from, DType to, int16_t *exponents)
{
    CastPlan plan;
    CastQuery query = {.from = from, .to = to, .elements = cast_group(from), .sm = 80,
                       .packed = to, .deferred = true};
    if (!cast_has_storage(from, to) || !cast_plan(arena, &query, &plan))
        return false;
    for (unsigned e = 0; e < query.elements; e++)
        exponents[e] = plan.exponents[e];
    return true;
}
