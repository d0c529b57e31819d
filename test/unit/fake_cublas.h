/* State of the fake cuBLAS that a test sees and sets. The library exports one `fake_cublas`. */
#ifndef TILUS_TEST_FAKE_CUBLAS_H
#define TILUS_TEST_FAKE_CUBLAS_H

#include <stdatomic.h>
#include <stddef.h>

typedef struct FakeCublas {
    const char *fail;           /* the call that fails, with status 13; NULL: none */
    atomic_int handles;         /* alive */
    atomic_int products;
    int overlaps;               /* calls with a handle that another thread was using */
    /* Of the last product. */
    void *stream, *workspace;
    size_t workspace_size;
    int op_a, op_b, m, n, k, a_type, a_stride, b_type, b_stride, c_type, c_stride, compute;
    const void *a, *b;
    void *c;
    float alpha, beta;
} FakeCublas;

#endif
