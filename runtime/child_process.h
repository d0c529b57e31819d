/* A child process, fed from memory, whose output is kept up to a limit and whose time is limited. */
#ifndef TILUS_RUNTIME_CHILD_PROCESS_H
#define TILUS_RUNTIME_CHILD_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One output of the child; bytes past `most` are read and dropped. */
typedef struct ChildOutput {
    int fd;                     /* -1: it has ended */
    char *bytes;                /* `size` of them and a NUL; NULL: none */
    size_t size, capacity, most;
    uint64_t dropped;
} ChildOutput;

typedef enum ChildEnd {
    CHILD_EXITED,               /* `number` is its exit code */
    CHILD_SIGNALED,             /* `number` is the signal that ended it */
    CHILD_REAPED,               /* the process reaps its children elsewhere: unknown */
    CHILD_LATE,                 /* ended here, after its time */
    CHILD_LOUD,                 /* ended here, as it wrote more than its output's `most` */
    CHILD_NOT_STARTED,          /* `number` is the errno */
    CHILD_NO_MEMORY             /* ended here, as memory ran out */
} ChildEnd;

typedef struct ChildResult {
    ChildEnd end;
    int number;
} ChildResult;

typedef struct ChildRun {
    char *const *arguments;     /* ends with NULL; the program is the first, sought in PATH when
                                   it has no slash */
    const char *input;          /* standard input; NULL: none */
    size_t input_size;
    uint64_t milliseconds;      /* that it may take */
    ChildOutput out, err;       /* `most` is set; too much of `out` ends the child, of `err` is
                                   dropped. The caller frees `bytes`, always */
} ChildRun;

/* Runs the child and waits for its end. */
ChildResult child_run(ChildRun *run);

#endif
