/* Reports of a run that ends in a fault. Nothing is allocated: this happens on a
 * fiber's stack, or after a signal. */
#define _GNU_SOURCE
#include "cpu/machine.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void fault_set(Worker *w, Place place, const char *format, ...)
{
    va_list args;
    w->cluster->fault = (Fault){.found = true, .block = w->block, .message = {.place = place}};
    va_start(args, format);
    vsnprintf(w->cluster->fault.message.text, FAULT_TEXT, format, args);
    va_end(args);
}

void fault_note(Worker *w, Place place, const char *format, ...)
{
    va_list args;
    if (w->cluster->fault.note_count == FAULT_NOTES)
        return;
    FaultLine *line = &w->cluster->fault.notes[w->cluster->fault.note_count++];
    line->place = place;
    va_start(args, format);
    vsnprintf(line->text, FAULT_TEXT, format, args);
    va_end(args);
}

const char *fault_block(const Worker *w, char text[FAULT_TEXT])
{
    int length = snprintf(text, FAULT_TEXT, "block (");
    for (unsigned d = 0; d < w->machine->program->grid_rank; d++)
        length += snprintf(text + length, (size_t)(FAULT_TEXT - length), "%s%" PRId64,
                           d ? ", " : "", w->index[d]);
    snprintf(text + length, (size_t)(FAULT_TEXT - length), ")");
    return text;
}

/* ---- deadlocks ----------------------------------------------------------- */

static bool same_wait(const Thread *a, const Thread *b)
{
    return a->state == b->state && a->place == b->place && a->at == b->at;
}

/* "thread 0", "threads 0..31, 64..95": those that are where `like` is. */
static void name_threads(const Worker *w, const Thread *like, char *text, size_t size)
{
    unsigned count = w->machine->thread_count, named = 0;
    size_t used = 0;
    for (unsigned i = 0, end; i < count && used < size; i = end + 1) {
        end = i;
        if (!same_wait(&w->threads[i], like))
            continue;
        while (end + 1 < count && same_wait(&w->threads[end + 1], like))
            end++;
        const char *before = named++ ? ", " : end > i ? "threads " : "thread ";
        int more = end > i ? snprintf(text + used, size - used, "%s%u..%u", before, i, end)
                           : snprintf(text + used, size - used, "%s%u", before, i);
        used += (size_t)more;
    }
}

/* Returns true when no thread before `t` is where `t` is. */
static bool is_first(const Worker *w, const Thread *t)
{
    for (const Thread *before = w->threads; before < t; before++)
        if (same_wait(before, t))
            return false;
    return true;
}

/* "threads 0..31"; where blocks run together, " of block (1)" after it. */
static void name_waiting(const Worker *w, const Thread *t, char text[FAULT_TEXT])
{
    char block[FAULT_TEXT];
    name_threads(w, t, text, FAULT_TEXT / 2);
    size_t used = strlen(text);
    if (w->machine->cluster > 1 && w->cluster->fault.found)
        snprintf(text + used, FAULT_TEXT - used, " of %.100s", fault_block(w, block));
}

static void say_thread(Worker *w, const Thread *t)
{
    char threads[FAULT_TEXT], block[FAULT_TEXT];
    name_waiting(w, t, threads);
    char what[FAULT_TEXT] = "threads that do not come";
    if (t->at == INTR_grid_poll)
        snprintf(what, sizeof what, "%u of the grid's %u blocks",
                 w->machine->cluster - count_at_grid(w, t->state_at), w->machine->cluster);
    if (t->state == THREAD_ENDED)
        fault_note(w, t->place, "%s: ended here", threads);
    else if (!w->cluster->fault.found)
        fault_set(w, t->place, "%s of %s: waiting here in %s for %s", threads,
                  fault_block(w, block), intrinsic_info[t->at].name, what);
    else
        fault_note(w, t->place, "%s: waiting here in %s", threads, intrinsic_info[t->at].name);
}

/* Waiting threads come first: the first of them is the message, the others are notes. */
static void say_threads(Worker *w, bool ended)
{
    for (unsigned i = 0; i < w->machine->thread_count; i++) {
        const Thread *t = &w->threads[i];
        if ((t->state == THREAD_ENDED) == ended && is_first(w, t))
            say_thread(w, t);
    }
}

void fault_deadlock(Worker *w)
{
    for (unsigned ended = 0; ended < 2; ended++)
        for (unsigned i = 0; i < w->machine->cluster; i++)
            say_threads(&w[i], ended);
}

/* ---- signals ------------------------------------------------------------- */

static const Guarded *find_region(const Worker *w, const unsigned char *address)
{
    const Machine *m = w->machine;
    const Worker *block = worker_of(address);
    const Guarded *own[] = {block ? &block->shared : &w->shared, &w->stacks};
    for (size_t i = 0; i < m->region_count + 2; i++) {
        const Guarded *r = i < m->region_count ? &m->regions[i] : own[i - m->region_count];
        if (r->base && address >= r->base && address < r->base + r->reserved)
            return r;
    }
    return NULL;
}

void fault_signal(Worker *w)
{
    const Thread *t = w->running;
    const unsigned char *address = w->signal_address;
    const Guarded *r = find_region(w, address);
    char block[FAULT_TEXT];
    fault_block(w, block);
    if (w->signal_number == SIGFPE)
        fault_set(w, t->place, "thread %u of %s divides by zero", t->number, block);
    else if (r == &w->stacks)
        fault_set(w, t->place, "thread %u of %s needs more stack than it has", t->number,
                  block);
    else if (r)
        fault_set(w, t->place, "thread %u of %s accesses %s at byte %td, it has %zu bytes",
                  t->number, block, r->name, address - r->data, r->size);
    else if (!address)
        fault_set(w, t->place, "thread %u of %s accesses an address that is not aligned, or "
                  "none", t->number, block);
    else
        fault_set(w, t->place, "thread %u of %s accesses address %p, far outside of every "
                  "buffer", t->number, block, (const void *)address);
}

/* ---- handing over -------------------------------------------------------- */

static Loc place_loc(Place place)
{
    uint64_t line = place >> PLACE_COLUMN;
    return (Loc){.line = line & ((UINT64_C(1) << PLACE_LINE) - 1),
                 .column = place & ((1u << PLACE_COLUMN) - 1), .length = 1,
                 .frame = (uint32_t)(line >> PLACE_LINE)};
}

bool fault_report(const Fault *f, Diag *diag)
{
    diag_error(diag, place_loc(f->message.place), "%s", f->message.text);
    for (unsigned i = 0; i < f->note_count; i++)
        diag_note(diag, place_loc(f->notes[i].place), "%s", f->notes[i].text);
    return false;
}
