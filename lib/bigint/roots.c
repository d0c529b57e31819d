/* Roots of unity modulo p = 2^64 - 2^32 + 1, for transforms. */
#include "bigint/internal.h"

#include <stdlib.h>

static const uint64_t prime = 0xffffffff00000001;

__extension__ typedef unsigned __int128 Wide;

static uint64_t times(uint64_t x, uint64_t y)
{
    return (uint64_t)((Wide)x * y % prime);
}

static uint64_t power(uint64_t x, uint64_t n)
{
    uint64_t y = 1;
    for (; n; n >>= 1, x = times(x, x))
        if (n & 1)
            y = times(y, x);
    return y;
}

/* Returns the root of order 2^26 whose 2^20th power is 8: an odd power of one that 7, which
 * generates all, gives. */
static uint64_t first_root(void)
{
    uint64_t root = power(7, (prime - 1) >> BIGINT_LOG_MAX);
    uint64_t of_64 = power(root, 1 << 20);
    uint64_t odd = 1;
    while (power(of_64, odd) != 8)
        odd += 2;
    return power(root, odd);
}

static void write_powers(uint64_t *to, size_t count, uint64_t x)
{
    to[0] = 1;
    for (size_t i = 1; i < count; i++)
        to[i] = times(to[i - 1], x);
}

void bigint_roots_write(uint64_t roots[static BIGINT_ROOTS])
{
    uint64_t root = first_root();
    write_powers(roots, 8192, power(root, 8192));
    write_powers(roots + 8192, 8192, root);
    write_powers(roots + 16384, 32, (prime + 1) / 2);
}

static tilus_status make(tilus_bigint *bigint, int device, uint64_t *out)
{
    const size_t size = BIGINT_ROOTS * sizeof(uint64_t);
    uint64_t *roots = malloc(size), address;
    if (!roots)
        return library_fail_memory();
    tilus_status status = tilus_rt_allocate(bigint->library.rt, device, size, &address);
    if (status == TILUS_OK) {
        bigint_roots_write(roots);
        status = tilus_rt_upload(bigint->library.rt, device, address, roots, size);
        if (status == TILUS_OK)
            *out = address;
        else
            tilus_rt_release(bigint->library.rt, device, address);
    }
    free(roots);
    return status;
}

tilus_status bigint_roots_prepare(tilus_bigint *bigint, int device, uint64_t *out)
{
    tilus_status status = TILUS_OK;
    pthread_mutex_lock(&bigint->lock);
    if (!bigint->roots[device])
        status = make(bigint, device, &bigint->roots[device]);
    *out = bigint->roots[device];
    pthread_mutex_unlock(&bigint->lock);
    return status;
}
