/* The matmul library on the fake driver, without kernels, which each test opens and closes. Include after cmocka. */
#ifndef TILUS_TEST_MATMUL_LIBRARY_H
#define TILUS_TEST_MATMUL_LIBRARY_H

#include "matmul_fixture.h"

static tilus_matmul *matmul;
static tilus_rt *rt;

static int open_library(void **state)
{
    set_up_matmul(state);
    matmul = open_matmul(&rt, NULL);
    return 0;
}

static int close_library(void **state)
{
    (void)state;
    tilus_matmul_close(matmul);
    tilus_rt_close(rt);
    assert_nothing_left();
    return 0;
}

#endif
