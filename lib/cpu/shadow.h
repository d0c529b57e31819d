/* Shadow memory: accesses by the threads of a block, kept to find races and reads of
 * bytes that nobody wrote (--check-races). One for each worker, whose accesses come in as
 * they happen; without one, in Worker.shadow, nothing here does anything.
 *
 * Faults end the run, as fault_now does. */
#ifndef TILUS_CPU_SHADOW_H
#define TILUS_CPU_SHADOW_H

#include "cpu/machine.h"

/* Kinds of access, by the unordered accesses of other threads that each conflicts with. */
typedef enum AccessKind {
    ACCESS_READ,                /* all but its like */
    ACCESS_WRITE,               /* all but the same op that writes the same */
    ACCESS_ATOMIC,              /* all but its like */
    ACCESS_BITS,                /* of bytes: all but the same op */
    ACCESS_REDUCE               /* all but its like */
} AccessKind;

/* Makes the shadows of `w`, the first of its cluster, and of the others, whose memory and whose
 * machine's regions are there already. False: there is no memory; shadow_close takes any. */
bool shadow_open(Worker *w);
void shadow_close(Worker *w);

/* The blocks of a cluster begin: nothing is written yet. They have ended: what was put off
 * is said. `w` is the first of them. */
void shadow_begin_block(Worker *w);
void shadow_end_block(Worker *w);

/* The running thread is about to access `size` bytes; of a write, `value` is what it
 * puts there. */
void shadow_access(AccessKind kind, const void *at, size_t size, const void *value);
/* So is its whole warp: no lane is known to be the one. */
void shadow_warp_access(AccessKind kind, const Thread *lane, const void *at, size_t size,
                        const void *value);

/* The running thread's next access does not depend on the bytes there now. */
void shadow_ignore_old(const void *at, size_t size);

/* A copy of the running thread is in flight: its source and target are nobody's, not
 * even the thread's own. Then its wait has come. */
void shadow_copy_begins(const Copy *copy);
void shadow_copy_ends(const Copy *copy);
/* A bulk copy of the running thread, one of its mbarrier's phase that now goes on, is in
 * flight: it reads `size` bytes at `at`, and writes its target. Somebody has waited for that
 * phase. */
void shadow_bulk_read(const BulkCopy *copy, const void *at, size_t size);
void shadow_bulk_write(const BulkCopy *copy);
void shadow_bulk_lands(const BulkCopy *copy);
/* The warp of `lane`, its first thread, reads bytes of a product in flight. Its wait has come. */
void shadow_product_begins(const Thread *lane, const ProductRead *read);
void shadow_product_ends(const Thread *lane, const ProductRead *read);
/* A bulk store of the running thread is in flight, which reads, writes or reduces `size` bytes
 * at `at`; the thread has waited for that of the op at `place`. */
void shadow_store_begins(AccessKind kind, const void *at, size_t size);
void shadow_store_ends(AccessKind kind, Place place, const void *at, size_t size);
/* The running thread's warp arrives at an mbarrier, whose number in the block this is;
 * the phase ends; the running thread has waited for the end. */
void shadow_arrive(unsigned mbarrier);
void shadow_phase_ends(unsigned mbarrier);
void shadow_wait(unsigned mbarrier);

/* The running thread gives a semaphore a value, or has seen one: of a cooperative program's blocks
 * this orders what the releasing thread knew before what this one does. */
void shadow_release(const void *at);
void shadow_acquire(const void *at);

/* The running thread has come to its end. */
void shadow_thread_ends(void);

/* The warps of the block of `w` with a bit in `warps` have come to a barrier, which orders
 * their accesses; all warps of the cluster have come to one. */
void shadow_join_barrier(Worker *w, uint32_t warps);
void shadow_join_cluster(Worker *w);
/* The warp of thread `t` of the block of `w` takes part in a barrier of the grid; all that do have
 * come there. */
void shadow_meet(Worker *w, const Thread *t);
void shadow_end_meeting(Worker *w);

#endif
