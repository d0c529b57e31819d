/* The matmul library on the fake driver, and weights for it. Include after cmocka. */
#ifndef TILUS_TEST_MATMUL_FIXTURE_H
#define TILUS_TEST_MATMUL_FIXTURE_H

#include "rt_fixture.h"

#include "matmul/internal.h"
#include "support/bits.h"

#include <math.h>

enum { CAPABILITY = 90 };

/* ---- the library -------------------------------------------------------- */

static inline uint32_t random_u32(void)
{
    static uint32_t seed = 2463534242u;
    seed ^= seed << 13;
    seed ^= seed >> 17;
    return seed ^= seed << 5;
}

static inline void fill_random(void *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((unsigned char *)data)[i] = (unsigned char)(random_u32() >> 7);
}

/* A library without kernels. */
static inline tilus_matmul *open_matmul(tilus_rt **rt, const tilus_matmul_options *options)
{
    tilus_matmul *matmul;
    tilus_matmul_options sized = options ? *options : (tilus_matmul_options){0};
    sized.struct_size = sizeof sized;
    *rt = open_fake();
    assert_ok(tilus_matmul_open(*rt, &sized, &matmul));
    return matmul;
}

static inline int set_up_matmul(void **state)
{
    set_up(state);
    fake->capability = CAPABILITY;
    setenv("TILUS_LIBCUBLAS", "", 1);
    return 0;
}

static inline tilus_matmul_plan *plan_of(tilus_matmul *matmul, tilus_matmul_problem problem)
{
    tilus_matmul_plan *plan;
    problem.struct_size = sizeof problem;
    assert_ok(tilus_matmul_plan_create(matmul, &problem, 0, &plan));
    return plan;
}

/* Packs in tiles of so many rows, whatever was chosen. */
static inline void use_rows(tilus_matmul_plan *plan, int rows)
{
    const MatmulConfig config = {.rows = rows};
    packed_place(&plan->packed, &plan->spec, rows);
    plan->pack[0] = kernel_find(plan->matmul, &plan->spec, &config, MATMUL_PACK_ACROSS,
                                plan->target);
    plan->pack[1] = kernel_find(plan->matmul, &plan->spec, &config, MATMUL_PACK, plan->target);
}

/* Has products of the bucket of m computed so, whatever was chosen. */
static inline void use_config(tilus_matmul_plan *plan, int64_t m, MatmulConfig config)
{
    Choice *choice = (Choice *)plan_choice(plan, m);
    use_rows(plan, config.rows);
    *choice = (Choice){.config = config};
    assert_true(choice_find(plan, choice));
}

/* Two launches. */
static const MatmulConfig prearranged_config = {.rows = 64, .warps_n = 1, .warps_k = 2,
                                                .stage_k_tiles = 1, .stages = 2, .columns = 8,
                                                .tiles = 1, .prearranged_a = 1, .per_sm = 2};

static inline int launches_of(const tilus_matmul_plan *plan, int64_t m)
{
    return plan_choice(plan, m)->prepare ? 2 : 1;
}

/* ---- weights ------------------------------------------------------------ */

/* Plain weights in blocks of exactly their sizes. */
typedef struct Plain {
    unsigned char *codes, *scales, *zeros;
    size_t code_bytes, scale_bytes, zero_bytes;
} Plain;

static inline void *random_block(size_t size)
{
    void *block = malloc(size + (size == 0));
    assert_non_null(block);
    fill_random(block, size);
    return block;
}

/* Makes bytes of scales, or of zero points of their type, finite. */
static inline void make_finite(DType type, unsigned char *bytes, size_t size)
{
    size_t each = dtype_bits(type) / 8;
    for (size_t i = 0; i < size; i += each) {
        double value = dtype_decode(type, bits_get(bytes, i / each, 8 * (unsigned)each));
        if (!isfinite(value))
            bytes[i + each - 1] &= 0xbf;
    }
}

/* Brings zero points in bytes into the range of the weights' type. */
static inline void make_zeros(DType type, unsigned char *bytes, size_t size)
{
    unsigned bits = dtype_bits(type);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(int)dtype_decode(type, bytes[i] & ((1u << bits) - 1));
}

/* Makes numbers that products have of all scales and zero points. */
static inline void plain_repair(const tilus_matmul_plan *plan, Plain *p)
{
    const MatmulSpec *s = &plan->spec;
    make_finite(s->scales, p->scales, p->scale_bytes / 2 * packed_scale_bytes(s));
    if (s->zeros == TILUS_ZEROS_INTEGER)
        make_zeros(s->weights, p->zeros, p->zero_bytes);
    else
        make_finite(s->scales, p->zeros, p->zero_bytes);
}

static inline Plain plain_random(const tilus_matmul_plan *plan)
{
    const MatmulSpec *s = &plan->spec;
    size_t scales = (size_t)(packed_groups(s) * s->n);
    Plain p = {.code_bytes = ((size_t)(s->n * s->k) * dtype_bits(s->weights) + 7) / 8,
               .scale_bytes = 2 * scales, .zero_bytes = packed_zero_bytes(s) * scales};
    p.codes = random_block(p.code_bytes);
    p.scales = random_block(p.scale_bytes);
    p.zeros = random_block(p.zero_bytes);
    plain_repair(plan, &p);
    return p;
}

static inline void plain_free(Plain *p)
{
    free(p->codes);
    free(p->scales);
    free(p->zeros);
}

static inline tilus_matmul_weights weights_of(const Plain *p, bool transposed)
{
    return (tilus_matmul_weights){sizeof(tilus_matmul_weights), p->codes, p->scales,
                                  p->zero_bytes ? p->zeros : NULL,
                                  .transposed = transposed};
}

/* Aligned as device memory is. */
static inline void *device_block(size_t size)
{
    size_t room = (size + MATMUL_ALIGN) / MATMUL_ALIGN * MATMUL_ALIGN;
    void *block = aligned_alloc(MATMUL_ALIGN, room);
    assert_non_null(block);
    memset(block, 0, size);
    return block;
}

#endif
