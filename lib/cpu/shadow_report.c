/* Races, and reads of bytes that nobody wrote, in words. */
#define _GNU_SOURCE
#include "cpu/shadow_state.h"

#include <stdio.h>

enum { ACCESSOR = 48 };         /* bytes of an accessor's name */

/* "thread 3", "a copy_async of thread 3". */
static void name_accessor(bool is_copy, bool is_bulk, bool is_product, bool is_store,
                          unsigned thread, char text[ACCESSOR])
{
    snprintf(text, ACCESSOR, "%sthread %u", is_product ? "a dot_async of "
                                            : is_store ? "a copy_async_bulk_store of "
                                            : is_bulk ? "a copy_async_bulk of "
                                            : is_copy ? "a copy_async of "
                                                      : "", thread);
}

/* Returns true of a copy that is in no group although its thread has waited for groups since. */
static bool is_uncommitted(const Access *a, const Record *r)
{
    const Worker *w = record_worker(a, r);
    const Copies *c = &w->threads[r->warp % block_warps(w) * LANES + r->lane].copies;
    for (size_t i = c->begin; i < c->end; i++)
        if (c->items[i].place == r->place)
            return c->items[i].group == c->committed && c->items[i].waits < c->waits;
    return false;
}

/* Says what should have come after `r`. */
static const char *missing_order(const Cells *c, const Access *a, const Record *r)
{
    return is_apart(c, r, a)                  ? "nothing orders the two blocks"
           : r->is_bulk                       ? "no mbarrier_wait lies between"
           : r->epoch != IN_FLIGHT            ? record_worker(a, r) == a->worker
                                                    ? "no synchronize lies between"
                                                : a->worker->machine->program->cooperative
                                                    ? "no grid_synchronize lies between"
                                                    : "no cluster_synchronize lies between"
           : r->is_product                    ? "no dot_wait lies between"
           : r->is_store                      ? "no copy_async_bulk_wait_group lies between"
           : is_uncommitted(a, r)             ? "the copy is in no group: no "
                                                "copy_async_commit_group lies between it and the "
                                                "copy_async_wait_group"
                                              : "no copy_async_wait_group lies between";
}

/* The accessor of `r` by name, with its block where that is another one. */
static void name_earlier(const Access *a, const Record *r, bool is_other, char text[FAULT_TEXT])
{
    const Worker *w = record_worker(a, r);
    unsigned warp = r->warp % block_warps(w);
    char who[ACCESSOR], block[FAULT_TEXT];
    name_accessor(r->is_copy, r->is_bulk, r->is_product, r->is_store,
                  warp * LANES + (is_other ? r->other : r->lane), who);
    snprintf(text, FAULT_TEXT, "%s%s%.100s", who, w == a->worker ? "" : " of ",
             w == a->worker ? "" : fault_block(w, block));
}

void shadow_report_race(const Access *a, const Record *r, const Cells *c, ptrdiff_t byte)
{
    static const char *const verbs[] = {"reads", "writes", "atomically changes", "writes",
                                        "reduces"};
    static const char *const done[] = {"read", "written", "atomically changed", "written",
                                       "reduced"};
    Worker *w = a->worker;
    char block[FAULT_TEXT], who[ACCESSOR], first[FAULT_TEXT];
    bool is_other = r->epoch != IN_FLIGHT && r->warp == a->warp && r->lane == a->lane;
    bool is_one = a->all_lanes && is_other && r->other == r->lane;
    fault_block(w, block);
    name_accessor(a->is_copy, a->is_bulk, a->is_product, a->is_store,
                  is_one ? a->thread ^ 1 : a->thread, who);
    name_earlier(a, r, is_other, first);
    if (r->kind == ACCESS_WRITE && r->kind == a->kind && r->place == a->place && !r->is_copy)
        fault_set(w, a->place, "race: %s of %s writes another value to byte %td of %s than %s",
                  who, block, byte, c->memory->name, first);
    else
        fault_set(w, a->place, "race: %s of %s %s byte %td of %s, %s has %s it, and %s", who, block,
                  verbs[a->kind], byte, c->memory->name, first, done[r->kind],
                  missing_order(c, a, r));
    fault_note(w, is_other ? r->other_place : r->place, "%s has %s it here", first,
               done[r->kind]);
    w->cluster->fault.is_race = true;
    fault_leave();
}

void shadow_report_undefined(Worker *w)
{
    const Undefined *u = &w->shadow->undefined;
    char block[FAULT_TEXT];
    w = u->worker;
    fault_set(w, u->place, "thread %u of %s reads byte %td of shared memory, which was never "
              "written", u->thread, fault_block(w, block), u->byte);
}
