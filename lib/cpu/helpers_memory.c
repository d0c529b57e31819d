/* Loads and stores with hints, which are plain here; atomic operations, which blocks
 * of several host threads may do at once; fences. */
#define _GNU_SOURCE
#include "cpu/machine.h"

#include "cpu/shadow.h"

#include <stdatomic.h>
#include <string.h>

/* ---- hints --------------------------------------------------------------- */

#define POLICY(id)                                                            \
    void cpu_##id(const uint64_t *args, uint64_t *results)                    \
    {                                                                         \
        (void)args;                                                           \
        results[0] = 0;                                                       \
    }
POLICY(policy_first)
POLICY(policy_last)

static void load(const uint64_t *args, uint64_t *results, unsigned bytes)
{
    uint32_t words[4];
    const void *at = helper_address(args[0], bytes);
    shadow_access(ACCESS_READ, at, bytes, NULL);
    memcpy(words, at, bytes);
    for (unsigned i = 0; i < bytes / sizeof *words; i++)
        results[i] = words[i];
}

static void store(const uint64_t *args, unsigned bytes)
{
    uint32_t words[4];
    for (unsigned i = 0; i < bytes / sizeof *words; i++)
        words[i] = (uint32_t)args[1 + i];
    void *at = helper_address(args[0], bytes);
    shadow_access(ACCESS_WRITE, at, bytes, words);
    memcpy(at, words, bytes);
}

#define LOAD(id, bytes)                                                       \
    void cpu_##id(const uint64_t *args, uint64_t *results)                    \
    {                                                                         \
        load(args, results, bytes);                                           \
    }
#define LOADS_AHEAD(id, bytes)                                                \
    LOAD(id##_64, bytes)                                                      \
    LOAD(id##_128, bytes)                                                     \
    LOAD(id##_256, bytes)
#define LOADS(bytes)                                                          \
    LOADS_AHEAD(load_##bytes##_ahead, bytes)                                  \
    LOAD(load_##bytes##_first, bytes)                                         \
    LOADS_AHEAD(load_##bytes##_first, bytes)                                  \
    LOAD(load_##bytes##_last, bytes)                                          \
    LOADS_AHEAD(load_##bytes##_last, bytes)                                   \
    void cpu_store_##bytes##_policy(const uint64_t *args, uint64_t *results)  \
    {                                                                         \
        (void)results;                                                        \
        store(args, bytes);                                                   \
    }
LOADS(4)
LOADS(8)
LOADS(16)

/* ---- order --------------------------------------------------------------- */

#define FENCE(id)                                                             \
    void cpu_##id(const uint64_t *args, uint64_t *results)                    \
    {                                                                         \
        (void)args;                                                           \
        (void)results;                                                        \
        atomic_thread_fence(memory_order_seq_cst);                            \
    }
FENCE(fence_block)
FENCE(fence_gpu)
FENCE(fence_system)

static uint32_t *word_at(const uint64_t *args)
{
    uint32_t *word = helper_address(args[0], sizeof *word);
    shadow_access(ACCESS_ATOMIC, word, sizeof *word, NULL);
    return word;
}

/* Who waits for a semaphore asks again and again: others shall have their turns. */
#define SEMAPHORE(scope)                                                      \
    void cpu_load_acquire_##scope(const uint64_t *args, uint64_t *results)    \
    {                                                                         \
        poll_again(INTR_load_acquire_##scope);                                \
        results[0] = __atomic_load_n(word_at(args), __ATOMIC_ACQUIRE);        \
        shadow_acquire(helper_address(args[0], sizeof(uint32_t)));            \
    }                                                                         \
    void cpu_store_release_##scope(const uint64_t *args, uint64_t *results)   \
    {                                                                         \
        (void)results;                                                        \
        __atomic_store_n(word_at(args), (uint32_t)args[1], __ATOMIC_RELEASE); \
        shadow_release(helper_address(args[0], sizeof(uint32_t)));            \
    }
SEMAPHORE(gpu)
SEMAPHORE(system)

/* ---- barriers of the grid ------------------------------------------------ */

/* No accesses for race checks: blocks count in a word of their own. */
void cpu_grid_arrive(const uint64_t *args, uint64_t *results)
{
    uint32_t *state = helper_address(args[0], sizeof *state), old = *state;
    *state += (uint32_t)args[1];
    results[0] = old;
    if ((old ^ *state) >> 31)
        end_wait_for_grid(args[0]);
}

/* Gives what differs. A thread whose state has not changed yet waits until it has. */
void cpu_grid_poll(const uint64_t *args, uint64_t *results)
{
    const uint32_t *state = helper_address(args[0], sizeof *state);
    if (!((*state ^ (uint32_t)args[1]) >> 31))
        wait_for_grid(INTR_grid_poll, args[0]);
    results[0] = *state ^ (uint32_t)args[1];
}

/* Blocks run one after the other, so nobody waits. */
void cpu_grid_pace(const uint64_t *args, uint64_t *results)
{
    uint32_t *state = helper_address(args[0], sizeof *state);
    (void)results;
    *state = *state + 1 == (uint32_t)args[2] ? 0 : *state + 1;
}

/* ---- atomic operations --------------------------------------------------- */

/* Returns the new value of a word that was `old`; `operands` follow the address. */
typedef uint32_t Change(uint32_t old, const uint64_t *operands);

/* Returns what was there. */
static uint32_t change_word(uint32_t *word, const uint64_t *operands, Change *by)
{
    uint32_t old = __atomic_load_n(word, __ATOMIC_RELAXED), next;
    do {
        next = by(old, operands);
    } while (!__atomic_compare_exchange_n(word, &old, next, false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    return old;
}

static uint32_t change(const uint64_t *args, Change *by)
{
    return change_word(word_at(args), args + 1, by);
}

/* Clears or sets the bits of `mask`, as stores of elements below a byte do: the rest of
 * the word is nobody's matter. */
static void change_bits(const uint64_t *args, Change *by, uint32_t mask)
{
    unsigned char *word = helper_address(args[0], sizeof(uint32_t));
    if (mask) {
        unsigned first = (unsigned)__builtin_ctz(mask) / 8;
        unsigned last = (31 - (unsigned)__builtin_clz(mask)) / 8;
        shadow_access(ACCESS_BITS, word + first, last - first + 1, NULL);
    }
    change_word((uint32_t *)(void *)word, args + 1, by);
}

/* An exchange may be the first to write there. */
static uint32_t exchange(const uint64_t *args, Change *by)
{
    shadow_ignore_old((const void *)(uintptr_t)args[0], sizeof(uint32_t));
    return change(args, by);
}

/* The sum of both halves of two words, each rounded to `t`. */
static uint32_t add_halves(DType t, uint32_t a, uint32_t b)
{
    uint32_t low = (uint32_t)dtype_add(t, a & 0xFFFF, b & 0xFFFF);
    return low | (uint32_t)dtype_add(t, a >> 16, b >> 16) << 16;
}

#define CHANGE(name, expression)                                              \
    static uint32_t name(uint32_t old, const uint64_t *operands)              \
    {                                                                         \
        uint32_t x = (uint32_t)operands[0];                                   \
        (void)old;                                                            \
        return expression;                                                    \
    }
CHANGE(change_and, old & x)
CHANGE(change_or, old | x)
CHANGE(change_add_u32, old + x)
CHANGE(change_add_f32, (uint32_t)dtype_add(DTYPE_f32, old, x))
CHANGE(change_add_f16, add_halves(DTYPE_f16, old, x))
CHANGE(change_add_bf16, add_halves(DTYPE_bf16, old, x))
CHANGE(change_max_s32, (int32_t)old > (int32_t)x ? old : x)
CHANGE(change_max_u32, old > x ? old : x)
CHANGE(change_min_s32, (int32_t)old < (int32_t)x ? old : x)
CHANGE(change_min_u32, old < x ? old : x)
CHANGE(change_exch_b32, x)
CHANGE(change_cas_b32, old == x ? (uint32_t)operands[1] : old)

#define RED(id, by)                                                           \
    void cpu_##id(const uint64_t *args, uint64_t *results)                    \
    {                                                                         \
        (void)results;                                                        \
        change(args, by);                                                     \
    }
#define BITS(id, by, mask)                                                    \
    void cpu_##id(const uint64_t *args, uint64_t *results)                    \
    {                                                                         \
        (void)results;                                                        \
        change_bits(args, by, mask);                                          \
    }
#define ATOM(id, by)                                                          \
    void cpu_##id(const uint64_t *args, uint64_t *results)                    \
    {                                                                         \
        results[0] = change(args, by);                                        \
    }
#define EXCHANGE(id, by)                                                      \
    void cpu_##id(const uint64_t *args, uint64_t *results)                    \
    {                                                                         \
        results[0] = exchange(args, by);                                      \
    }
#define FAMILY(KIND, id, by)                                                  \
    KIND(id##_block, by)                                                      \
    KIND(id##_gpu, by)                                                        \
    KIND(id##_system, by)                                                     \
    KIND(id##_shared, by)
#define BOTH(operation)                                                       \
    FAMILY(RED, atomic_##operation, change_##operation)                       \
    FAMILY(ATOM, atomic_##operation##_fetch, change_##operation)

BITS(atomic_and_global, change_and, ~(uint32_t)args[1])
BITS(atomic_or_global, change_or, (uint32_t)args[1])
BITS(atomic_and_shared, change_and, ~(uint32_t)args[1])
BITS(atomic_or_shared, change_or, (uint32_t)args[1])
BOTH(add_u32)
BOTH(add_f32)
BOTH(add_f16)
BOTH(add_bf16)
BOTH(max_s32)
BOTH(max_u32)
BOTH(min_s32)
BOTH(min_u32)
FAMILY(EXCHANGE, atomic_exch_b32, change_exch_b32)
FAMILY(ATOM, atomic_cas_b32, change_cas_b32)
