/* Collectives of a warp: shuffles, redux, ldmatrix and stmatrix, by the PTX ISA. */
#define _GNU_SOURCE
#include "cpu/machine.h"

#include "cpu/shadow.h"

#include <string.h>

enum { MATRIX_ROWS = 8, ROW_BYTES = 16 };

/* ---- shfl.sync (PTX ISA, 9.7.9.6) ----------------------------------------- */

/* The lane that `lane` reads from by operand b, in a segment from lane `first` on; `within` are
 * the bits of a lane's number in its segment. It may be outside. */
static int shuffle_source(IntrinsicId id, int lane, int b, int first, int within)
{
    if (id == INTR_shuffle_up)
        return lane - b;
    return id == INTR_shuffle_index ? first | (b & within) : lane ^ b;
}

/* args: membermask, value, operand b, clamp and segment mask. */
static void shuffle(Thread *lanes, IntrinsicId id)
{
    for (int lane = 0; lane < LANES; lane++) {
        const uint64_t *args = lanes[lane].args;
        int clamp = (int)(args[3] & 31), segment = (int)(args[3] >> 8 & 31);
        int end = (lane & segment) | (clamp & ~segment);
        int from = shuffle_source(id, lane, (int)(args[2] & 31), lane & segment, ~segment);
        bool inside = id == INTR_shuffle_up ? from >= end : from <= end;
        lanes[lane].results[0] = lanes[inside ? from : lane].args[1];
    }
}

WARP_HELPER(shuffle_xor, shuffle)
WARP_HELPER(shuffle_up, shuffle)
WARP_HELPER(shuffle_index, shuffle)

/* ---- redux.sync (PTX ISA, 9.7.13.8) ---------------------------------------- */

static uint32_t redux_combine(IntrinsicId id, uint32_t a, uint32_t b)
{
    bool is_less = (int32_t)a < (int32_t)b;
    switch (id) {
    case INTR_redux_add: return a + b;
    case INTR_redux_and: return a & b;
    case INTR_redux_or: return a | b;
    case INTR_redux_smax: return is_less ? b : a;
    case INTR_redux_smin: return is_less ? a : b;
    case INTR_redux_umax: return a < b ? b : a;
    default: return a < b ? a : b;
    }
}

/* args: value, membermask, which names all lanes. */
static void redux(Thread *lanes, IntrinsicId id)
{
    uint32_t v = (uint32_t)lanes[0].args[0];
    for (unsigned lane = 1; lane < LANES; lane++)
        v = redux_combine(id, v, (uint32_t)lanes[lane].args[0]);
    for (unsigned lane = 0; lane < LANES; lane++)
        lanes[lane].results[0] = v;
}

WARP_HELPER(redux_add, redux)
WARP_HELPER(redux_and, redux)
WARP_HELPER(redux_or, redux)
WARP_HELPER(redux_smax, redux)
WARP_HELPER(redux_smin, redux)
WARP_HELPER(redux_umax, redux)
WARP_HELPER(redux_umin, redux)

/* ---- ldmatrix, stmatrix (PTX ISA, 9.7.14.5.15 and .16) ------------------- */

/* 8x8 matrices of 16-bit elements. Lane 8 * i + r has the address of row r of
 * matrix i. Word i of a lane holds elements (row, column) and the next one to it:
 *
 *     row = lane / 4      column = 2 * (lane % 4)
 *
 * or, with .trans, rows and columns change their roles. */
typedef struct Matrices {
    unsigned count;
    bool transposed;
    unsigned char *rows[4 * MATRIX_ROWS];
} Matrices;

static void locate(Matrices *m, const Thread *lanes)
{
    for (unsigned i = 0; i < m->count * MATRIX_ROWS; i++)
        m->rows[i] = helper_address(lanes[i].args[0], ROW_BYTES);
}

/* Half `half` of a lane's word of matrix `i`, in its row. */
static unsigned char *element(const Matrices *m, unsigned i, unsigned lane, unsigned half)
{
    unsigned row = lane / 4, column = lane % 4 * 2 + half;
    if (m->transposed)
        return m->rows[i * MATRIX_ROWS + column] + 2 * row;
    return m->rows[i * MATRIX_ROWS + row] + 2 * column;
}

static void load(Matrices m, Thread *lanes)
{
    locate(&m, lanes);
    for (unsigned row = 0; cpu_worker->shadow && row < m.count * MATRIX_ROWS; row++)
        shadow_warp_access(ACCESS_READ, &lanes[row], m.rows[row], ROW_BYTES, NULL);
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned i = 0; i < m.count; i++) {
            uint16_t halves[2];
            for (unsigned half = 0; half < 2; half++)
                memcpy(&halves[half], element(&m, i, lane, half), sizeof *halves);
            lanes[lane].results[i] = halves[0] | (uint32_t)halves[1] << 16;
        }
}

/* Rows with equal addresses: the last one wins, each is checked against those before. */
static void store(Matrices m, Thread *lanes)
{
    unsigned char rows[4 * MATRIX_ROWS][ROW_BYTES];
    Matrices data = m;
    locate(&m, lanes);
    for (unsigned row = 0; row < m.count * MATRIX_ROWS; row++)
        data.rows[row] = rows[row];
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned i = 0; i < m.count; i++)
            for (unsigned half = 0; half < 2; half++) {
                uint16_t v = (uint16_t)(lanes[lane].args[1 + i] >> 16 * half);
                memcpy(element(&data, i, lane, half), &v, sizeof v);
            }
    for (unsigned row = 0; row < m.count * MATRIX_ROWS; row++) {
        shadow_warp_access(ACCESS_WRITE, &lanes[row], m.rows[row], ROW_BYTES, rows[row]);
        memcpy(m.rows[row], rows[row], ROW_BYTES);
    }
}

#define MATRIX(act, id, count, transposed)                                    \
    static void act##_##id(Thread *lanes, IntrinsicId intrinsic)              \
    {                                                                         \
        (void)intrinsic;                                                      \
        act((Matrices){count, transposed, {NULL}}, lanes);                    \
    }                                                                         \
    WARP_HELPER(id, act##_##id)

MATRIX(load, ldmatrix_x1, 1, false)
MATRIX(load, ldmatrix_x2, 2, false)
MATRIX(load, ldmatrix_x4, 4, false)
MATRIX(load, ldmatrix_x1_trans, 1, true)
MATRIX(load, ldmatrix_x2_trans, 2, true)
MATRIX(load, ldmatrix_x4_trans, 4, true)
MATRIX(store, stmatrix_x1, 1, false)
MATRIX(store, stmatrix_x2, 2, false)
MATRIX(store, stmatrix_x4, 4, false)
MATRIX(store, stmatrix_x1_trans, 1, true)
MATRIX(store, stmatrix_x2_trans, 2, true)
MATRIX(store, stmatrix_x4_trans, 4, true)
