/* Telling a forked child from the process that made the mark: a driver that was
 * initialized before the fork does not work in the child. */
#ifndef TILUS_RUNTIME_FORK_MARK_H
#define TILUS_RUNTIME_FORK_MARK_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct ForkMark {
    const volatile int *page;   /* 1, but 0 in a child; NULL where the system cannot do that */
    pid_t pid;
} ForkMark;

void fork_mark_make(ForkMark *mark);
void fork_mark_free(ForkMark *mark);

/* Returns true in the process that made the mark. Costs one load where the system allows. */
bool fork_mark_is_mine(const ForkMark *mark);

#endif
