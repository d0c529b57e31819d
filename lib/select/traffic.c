/* Memory traffic of one instruction of a warp, by enumeration of its lanes. */
#include "select/traffic.h"

#include "ir/op_attrs.h"
#include "ir/part.h"
#include "ir/tile.h"
#include "select/matrix.h"

enum { LANES = 32, BANKS = 32, BANK_BYTES = 4, SECTOR_BYTES = 32 };

/* The start of a lane's access: a byte, after steps of strides that are not constant, or
 * at indices that data choose, numbered. */
typedef struct Place {
    int64_t far, byte;
} Place;

/* Returns the element where a part begins, as far as offsets and strides are constants. */
static uint64_t first_element(Module *m, const Value *memory)
{
    uint64_t first = 0;
    for (const Op *op; (op = part_op(memory)); memory = op->operands[0]) {
        const Attr *offsets = op_attr(op, ATTR_OFFSETS);
        for (unsigned d = 0; offsets && d < offsets->count; d++) {
            const Expr *stride = type_stride(m, op->operands[0]->type, d);
            if (expr_is_constant(offsets->exprs[d]) && expr_is_constant(stride))
                first += (uint64_t)offsets->exprs[d]->constant * (uint64_t)stride->constant;
        }
    }
    return first;
}

/* The element at `index` of tile `t`. */
static Place place_in_tile(Module *m, const MemoryTile *t, const int64_t *index)
{
    const Type *memory = t->memory->type;
    uint64_t full[LIMIT_RANK];      /* wrapping, as element: strides may be anything */
    uint64_t element = first_element(m, t->memory);
    Place p = {0};
    for (unsigned d = 0; d < memory->rank; d++)
        full[d] = expr_is_constant(t->offsets->exprs[d])
                      ? (uint64_t)t->offsets->exprs[d]->constant : 0;
    for (unsigned d = 0; d < t->rank; d++) {
        unsigned of = memory_tile_dim(t, d);
        bool indexed = memory_tile_is_indexed(t, of), uniform = memory_tile_is_uniform(t, d);
        if (!uniform || (!indexed && !expr_is_constant(type_stride(m, memory, of))))
            p.far = p.far * t->extents[d] + index[d];
        if (!indexed && expr_is_constant(type_stride(m, memory, of)))
            full[of] += (uint64_t)index[d];
    }
    for (unsigned d = 0; d < memory->rank; d++) {
        const Expr *stride = type_stride(m, memory, d);
        if (expr_is_constant(stride))
            element += full[d] * (uint64_t)stride->constant;
    }
    element = (uint64_t)swizzle_element(memory->swizzle, (int64_t)element);
    p.byte = (int64_t)(element * dtype_bits(memory->dtype)) / 8;
    return p;
}

static Place place_of(Module *m, const Op *op, const int64_t *index)
{
    MemoryTile t = op_memory_tile(op);
    return place_in_tile(m, &t, index);
}

/* The row whose address `lane` gives to an instruction of matrices. */
static void matrix_lane_index(const MatrixPlan *plan, int64_t warp, int64_t lane, int64_t *index)
{
    layout_index(plan->outer, warp, lane / MATRIX_ROWS, index);
    for (unsigned d = 0; d < plan->outer->rank; d++)
        index[d] *= plan->extents[d];
    index[plan->row] += lane % MATRIX_ROWS;
}

/* Fills `places` for the lanes of `warp`; returns how many take part. */
static unsigned place_lanes(Module *m, const Op *op, const Access *a, int64_t warp,
                            Place *places)
{
    const Layout *l = op_tile_type(op)->layout;
    unsigned matrices = via_info[a->via].matrices;
    unsigned count = matrices ? matrices * MATRIX_ROWS : LANES;
    for (unsigned lane = 0; lane < count; lane++) {
        int64_t index[LIMIT_RANK];
        if (matrices)
            matrix_lane_index(&a->matrix, warp, lane, index);
        else
            layout_index(l, warp * LANES + lane, 0, index);
        places[lane] = place_of(m, op, index);
    }
    return count;
}

unsigned access_lane_bytes(const Op *op, const Access *a)
{
    unsigned matrices = via_info[a->via].matrices, bits = dtype_bits(op_tile_type(op)->dtype);
    return matrices ? 4 * matrices : a->bytes ? a->bytes : (bits + 7) / 8;
}

/* ---- copies --------------------------------------------------------------- */

/* Fills `places` with where the first chunks of threads `first` and on, a warp, begin in tile
 * `t`, one of the copy's; returns how many have one. */
static unsigned place_chunks(Module *m, const MemoryTile *t, const MemoryTile *source,
                             const CopyPlan *plan, int64_t first, Place *places)
{
    int64_t index[LIMIT_RANK], width = dtype_bits(t->memory->type->dtype);
    unsigned count = 0;
    for (int64_t lane = 0; lane < LANES; lane++) {
        int64_t before = 0;     /* whole chunks of a row, in bits */
        if (!copy_thread_index(plan, source, first + lane, index))
            continue;
        if (plan->along >= 0) {
            before = index[plan->along] * plan->bytes * 8;
            index[plan->along] = before / width;
            before -= index[plan->along] * width;
        }
        places[count] = place_in_tile(m, t, index);
        places[count++].byte += before / 8;
    }
    return count;
}

/* ---- bank conflicts ------------------------------------------------------ */

/* Most different words of one bank among those of `count` lanes. */
static unsigned phase_ways(const Place *places, unsigned count, unsigned bytes)
{
    int64_t words[LANES];
    unsigned word_count = 0, ways[BANKS] = {0}, worst = 1;
    for (unsigned i = 0; i < count; i++)
        for (int64_t at = 0; at < bytes; at += BANK_BYTES) {
            int64_t word = (places[i].byte + at) / BANK_BYTES;
            unsigned j = 0;
            while (j < word_count && words[j] != word)
                j++;
            if (j < word_count)
                continue;
            words[word_count++] = word;
            unsigned bank = (unsigned)((uint64_t)word % BANKS);
            worst = ++ways[bank] > worst ? ways[bank] : worst;
        }
    return worst;
}

/* The ways of the worst phase of a warp whose lanes access `bytes` bytes each. */
static unsigned warp_ways(const Place *places, unsigned count, unsigned bytes)
{
    unsigned lanes = bytes <= BANK_BYTES ? LANES : LANES * BANK_BYTES / bytes, worst = 1;
    for (unsigned i = 0; i < count; i += lanes) {
        unsigned ways = phase_ways(places + i, count - i < lanes ? count - i : lanes, bytes);
        worst = ways > worst ? ways : worst;
    }
    return worst;
}

unsigned access_conflict_ways(Module *m, const Op *op, const Access *a)
{
    unsigned worst = 1;
    for (int64_t warp = 0; warp < op_tile_type(op)->layout->threads / LANES; warp++) {
        Place places[LANES];
        unsigned count = place_lanes(m, op, a, warp, places);
        unsigned ways = warp_ways(places, count, a->bytes ? a->bytes : 1);
        worst = ways > worst ? ways : worst;
    }
    return worst;
}

unsigned copy_conflict_ways(Module *m, const Op *op, const CopyPlan *plan)
{
    MemoryTile source = op_source_tile(op), target = op_memory_tile(op);
    unsigned worst = 1;
    for (int64_t first = 0; first < region_threads(op->parent).count; first += LANES) {
        Place places[LANES];
        unsigned count = place_chunks(m, &target, &source, plan, first, places);
        unsigned ways = warp_ways(places, count, plan->bytes ? plan->bytes : 1);
        worst = ways > worst ? ways : worst;
    }
    return worst;
}

/* ---- sectors ---------------------------------------------------------------- */

/* Different places among `count`, each rounded down to multiples of `bytes`. */
static unsigned count_blocks(const Place *places, unsigned count, int64_t bytes)
{
    unsigned blocks = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned j = 0;
        while (j < i && (places[j].far != places[i].far ||
                         places[j].byte / bytes != places[i].byte / bytes))
            j++;
        blocks += j == i;
    }
    return blocks;
}

/* Counts the sectors of one warp's request; keeps the most of all warps so far. */
static void worst_sectors(const Place *places, unsigned count, unsigned bytes, unsigned *worst,
                          unsigned *least)
{
    unsigned sectors = count_blocks(places, count, SECTOR_BYTES);
    if (sectors <= *worst)
        return;
    *worst = sectors;
    *least = (count_blocks(places, count, bytes) * bytes + SECTOR_BYTES - 1) / SECTOR_BYTES;
}

unsigned access_sectors(Module *m, const Op *op, const Access *a, unsigned *least)
{
    unsigned worst = 0;
    *least = 0;
    for (int64_t warp = 0; warp < op_tile_type(op)->layout->threads / LANES; warp++) {
        Place places[LANES];
        unsigned count = place_lanes(m, op, a, warp, places);
        worst_sectors(places, count, access_lane_bytes(op, a), &worst, least);
    }
    return worst;
}

unsigned copy_sectors(Module *m, const Op *op, const CopyPlan *plan, unsigned *least)
{
    MemoryTile source = op_source_tile(op);
    unsigned worst = 0;
    *least = 0;
    for (int64_t first = 0; first < region_threads(op->parent).count; first += LANES) {
        Place places[LANES];
        unsigned count = place_chunks(m, &source, &source, plan, first, places);
        worst_sectors(places, count, plan->bytes ? plan->bytes : 1, &worst, least);
    }
    return worst;
}
