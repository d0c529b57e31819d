/* Limits of the compiler, each in one place. Past one, the user gets a
 * located error. */
#ifndef TILUS_SUPPORT_LIMITS_H
#define TILUS_SUPPORT_LIMITS_H

enum {
    LIMIT_RANK = 8,                     /* dimensions of a tensor */
    LIMIT_NESTING = 256,                /* regions, parentheses, expression depth */
    LIMIT_IDENTIFIER = 1024,            /* bytes */
    LIMIT_INPUT = 64 << 20,             /* bytes of program text */
    LIMIT_VALUES = 1 << 20,             /* SSA values in a module */
    LIMIT_THREADS = 1024,               /* a block (CUDA programming guide, 16.2) */
    LIMIT_ELEMENTS_A_THREAD = 1 << 16,  /* of one register tensor */
    LIMIT_ERRORS = 100,                 /* errors kept; later ones are counted */
};

#endif
