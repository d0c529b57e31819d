/* A page that the kernel empties in a forked child (madvise(2), MADV_WIPEONFORK). Asking
 * for the process would be a system call for each launch, and a handler for forks a trace
 * in the host process that outlives us. */
#define _GNU_SOURCE
#include "fork_mark.h"

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIZE = 1 };      /* the system makes it a page */

void fork_mark_make(ForkMark *mark)
{
    *mark = (ForkMark){.pid = getpid()};
    int *page = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    if (madvise(page, SIZE, MADV_WIPEONFORK) != 0) {
        munmap(page, SIZE);
        return;
    }
    *page = 1;
    mark->page = page;
}

void fork_mark_free(ForkMark *mark)
{
    if (mark->page)
        munmap((void *)(size_t)mark->page, SIZE);
    mark->page = NULL;
}

bool fork_mark_is_mine(const ForkMark *mark)
{
    return mark->page ? *mark->page != 0 : getpid() == mark->pid;
}
