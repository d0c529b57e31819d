/* mma.sync: d = a * b + c of a warp's fragments (select/mma.h).
 *
 * Products of floats are exact in f64. They are summed there in ascending k, the
 * element of c is added last, and the sum is rounded once to the type of c, as the
 * interpreter's `dot` of one instruction's k does. Integers wrap. */
#define _GNU_SOURCE
#include "cpu/machine.h"

#include <math.h>
#include <string.h>

enum { M = 16, N = 8, K_MOST = 64 };

/* ---- fragments ----------------------------------------------------------- */

static void operand_places(Module *m, const Mma *mma, unsigned operand, MmaPlaces *places)
{
    const Layout *l = mma_fragment(&m->layouts, mma, operand);
    uint16_t *of = arena_array(&m->scratch, uint16_t, (size_t)(l->threads * l->slots));
    int64_t shape[2], index[LIMIT_RANK];
    mma_shape(mma, operand, shape);
    for (int64_t thread = 0; thread < l->threads; thread++)
        for (int64_t slot = 0; slot < l->slots; slot++) {
            layout_index(l, thread, slot, index);
            of[thread * l->slots + slot] = (uint16_t)(index[0] * shape[1] + index[1]);
        }
    places->of[operand] = of;
    places->slots[operand] = (unsigned)l->slots;
}

const MmaPlaces *mma_places(Module *m)
{
    MmaPlaces *places = arena_array(&m->scratch, MmaPlaces, MMA_COUNT);
    for (unsigned row = 0; row < MMA_COUNT; row++)
        for (unsigned operand = 0; operand < MMA_OPERANDS; operand++)
            operand_places(m, &mma_table[row], operand, &places[row]);
    return places;
}

/* An instruction in flight: its row, and where each operand's words begin. */
typedef struct Product {
    const Mma *mma;
    const MmaPlaces *places;
    unsigned first[MMA_OPERANDS];
} Product;

static unsigned operand_words(const Product *p, unsigned operand)
{
    return p->places->slots[operand] * dtype_bits(p->mma->types[operand]) / 32;
}

/* The code in `slot` of the words from number `first` on, one in each of `args`. */
static uint64_t get_code(const uint64_t *args, unsigned first, unsigned slot, unsigned bits)
{
    unsigned bit = slot * bits;
    uint64_t word = args[first + bit / 32] >> bit % 32;
    return word & (UINT64_MAX >> (64 - bits));
}

/* ---- numbers ------------------------------------------------------------- */

/* The value of each f16 code, made once in a process. */
static float halves[1 << 16];

static void decode_halves(void)
{
    for (uint64_t code = 0; code < sizeof halves / sizeof *halves; code++)
        halves[code] = (float)dtype_decode(DTYPE_f16, code);
}

static float float_of_bits(uint64_t code)
{
    uint32_t bits = (uint32_t)code;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* As dtype_decode, which is slower. */
static double decode(DType t, uint64_t code)
{
    switch (t) {
    case DTYPE_f16: return halves[code];
    case DTYPE_bf16: return float_of_bits(code << 16);
    case DTYPE_f32: return float_of_bits(code);
    default: return dtype_decode(t, code);
    }
}

/* As dtype_encode; a conversion in C rounds as it does. */
static uint64_t encode(DType t, double value)
{
    float rounded = (float)value;
    uint32_t bits;
    if (t != DTYPE_f32 || isnan(value))
        return dtype_encode(t, value);
    memcpy(&bits, &rounded, sizeof bits);
    return bits;
}

/* ---- gathering ----------------------------------------------------------- */

typedef void Gather(DType t, uint64_t code, void *to, size_t place);

static void gather_float(DType t, uint64_t code, void *to, size_t place)
{
    ((double *)to)[place] = decode(t, code);
}

static void gather_integer(DType t, uint64_t code, void *to, size_t place)
{
    unsigned unused = 64 - dtype_bits(t);
    int64_t extended = (int64_t)(code << unused) >> unused;
    ((int32_t *)to)[place] = (int32_t)(dtype_info[t].kind == DKIND_INT ? (uint64_t)extended
                                                                       : code);
}

/* The elements of an operand of all lanes, row by row. */
static void gather(const Product *p, const Thread *lanes, unsigned operand, Gather *one,
                   void *to)
{
    DType t = p->mma->types[operand];
    unsigned slots = p->places->slots[operand], bits = dtype_bits(t);
    const uint16_t *place = p->places->of[operand];
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned slot = 0; slot < slots; slot++)
            one(t, get_code(lanes[lane].args, p->first[operand], slot, bits), to, *place++);
}

/* Puts the code for slot `slot` of the result into a lane's words. */
static void put_code(uint64_t *results, unsigned slot, unsigned bits, uint64_t code)
{
    unsigned bit = slot * bits;
    if (bit % 32 == 0)
        results[bit / 32] = 0;
    results[bit / 32] |= code << bit % 32;
}

/* ---- products ------------------------------------------------------------ */

static void multiply_floats(const Product *p, Thread *lanes)
{
    static once_flag once = ONCE_FLAG_INIT;
    call_once(&once, decode_halves);
    double a[M * K_MOST], b[K_MOST * N], c[M * N], sum[M * N];
    int64_t depth = p->mma->k;
    gather(p, lanes, MMA_A, gather_float, a);
    gather(p, lanes, MMA_B, gather_float, b);
    gather(p, lanes, MMA_C, gather_float, c);
    for (unsigned i = 0; i < M * N; i++)
        sum[i] = -0.0;          /* the neutral element: 0 + -0 would be 0 */
    for (unsigned m = 0; m < M; m++)
        for (int64_t k = 0; k < depth; k++)
            for (unsigned n = 0; n < N; n++)
                sum[m * N + n] += a[m * depth + k] * b[k * N + n];
    DType t = p->mma->types[MMA_C];
    const uint16_t *place = p->places->of[MMA_C];
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned slot = 0; slot < p->places->slots[MMA_C]; slot++, place++)
            put_code(lanes[lane].results, slot, dtype_bits(t),
                     encode(t, sum[*place] + c[*place]));
}

static void multiply_integers(const Product *p, Thread *lanes)
{
    int32_t a[M * K_MOST], b[K_MOST * N], c[M * N];
    int64_t depth = p->mma->k;
    gather(p, lanes, MMA_A, gather_integer, a);
    gather(p, lanes, MMA_B, gather_integer, b);
    gather(p, lanes, MMA_C, gather_integer, c);
    for (unsigned m = 0; m < M; m++)
        for (int64_t k = 0; k < depth; k++)
            for (unsigned n = 0; n < N; n++)
                c[m * N + n] = (int32_t)((uint32_t)c[m * N + n] +
                                         (uint32_t)(a[m * depth + k] * b[k * N + n]));
    const uint16_t *place = p->places->of[MMA_C];
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned slot = 0; slot < p->places->slots[MMA_C]; slot++)
            lanes[lane].results[slot] = (uint32_t)c[*place++];
}

/* The row whose words the instruction takes as they are. */
static unsigned find_row(IntrinsicId id)
{
    static const struct { IntrinsicId id; unsigned parts; } rows[MMA_COUNT] = {
#define MMA(a, b, c, m, n, k, from, to, parts, intrinsic)                     \
    [MMA_ROW_##a##_##b##_##c##_##k##_##from] = {INTR_##intrinsic, parts},
#include "select/mma.def"
    };
    unsigned row = 0;
    while (rows[row].id != id || rows[row].parts != 1)
        row++;
    return row;
}

static void multiply(Thread *lanes, IntrinsicId id)
{
    unsigned row = find_row(id);
    Product p = {.mma = &mma_table[row], .places = &cpu_worker->machine->mma[row]};
    p.first[MMA_B] = operand_words(&p, MMA_A);
    p.first[MMA_C] = p.first[MMA_B] + operand_words(&p, MMA_B);
    if (dtype_is_float(p.mma->types[MMA_C]))
        multiply_floats(&p, lanes);
    else
        multiply_integers(&p, lanes);
}

WARP_HELPER(mma_f32_f16, multiply)
WARP_HELPER(mma_f32_bf16, multiply)
WARP_HELPER(mma_f16_f16, multiply)
WARP_HELPER(mma_f32_f16_k8, multiply)
WARP_HELPER(mma_f32_bf16_k8, multiply)
WARP_HELPER(mma_f16_f16_k8, multiply)
WARP_HELPER(mma_f32_tf32, multiply)
WARP_HELPER(mma_i32_i8_i8, multiply)
WARP_HELPER(mma_i32_i8_u8, multiply)
WARP_HELPER(mma_i32_u8_i8, multiply)
WARP_HELPER(mma_i32_u8_u8, multiply)
WARP_HELPER(mma_i32_i4_i4, multiply)
WARP_HELPER(mma_i32_i4_u4, multiply)
WARP_HELPER(mma_i32_u4_i4, multiply)
WARP_HELPER(mma_i32_u4_u4, multiply)
WARP_HELPER(mma_f32_e4m3_e4m3, multiply)
WARP_HELPER(mma_f32_e4m3_e5m2, multiply)
WARP_HELPER(mma_f32_e5m2_e4m3, multiply)
WARP_HELPER(mma_f32_e5m2_e5m2, multiply)
