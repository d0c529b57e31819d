/* The verifier's rules of threads: groups of whole warps, the register tensors that they
 * hold, and `exit`, which is for the whole block. */
#include "ir/verify.h"

#include "ir/text.h"

enum { WARP = 32 };

/* "the block", "the thread_group". */
static const char *owner_text(const Region *r)
{
    return region_thread_group(r) ? "the thread_group" : "the block";
}

/* ---- register tensors ---------------------------------------------------- */

bool verify_result_threads(Module *m, const Op *op)
{
    int64_t threads = region_threads(op->parent).count;
    bool ok = true;
    for (unsigned i = 0; i < op->result_count; i++) {
        const Value *v = op->results[i];
        if (v->type->kind != TYPE_REG || type_is_open(v->type) ||
            v->type->layout->threads == threads)
            continue;
        ok = diag_error(m->diag, v->loc, "%s spreads over %lld threads, %s has %lld",
                        value_text(m, v), (long long)v->type->layout->threads,
                        owner_text(op->parent), (long long)threads);
    }
    return ok;
}

/* A group is part of the group or block around it: as many threads are the same ones.
 * Values that the op's own region defines were reported there if they are wrong. */
bool verify_operand_threads(Module *m, const Op *op)
{
    int64_t threads = region_threads(op->parent).count;
    for (unsigned i = 0; i < op->operand_count; i++) {
        const Value *v = op->operands[i];
        const Region *from = v->def ? v->def->parent : v->region ? v->region : op->parent;
        if (v->type->kind != TYPE_REG || region_threads(from).count == threads)
            continue;
        diag_error(m->diag, op->loc, "%s runs on %lld threads of a thread_group, its operand "
                   "%s was made outside by %lld", op_info[op->code].name, (long long)threads,
                   value_text(m, v), (long long)region_threads(from).count);
        return diag_note(m->diag, v->loc, "%s is defined here", value_text(m, v));
    }
    return true;
}

/* ---- groups ---------------------------------------------------------------- */

static bool verify_warps(Module *m, const Op *op, const char *what, int64_t threads,
                         int64_t least)
{
    return (threads >= least && threads % WARP == 0) ||
           diag_error(m->diag, op->loc, "the %s of a thread_group is %lld, it must be a "
                      "multiple of %d from %lld", what, (long long)threads, WARP,
                      (long long)least);
}

bool verify_thread_group(Module *m, const Op *op)
{
    const Expr *begin = op_expr(op, ATTR_BEGIN), *count = op_expr(op, ATTR_THREADS);
    int64_t around = region_threads(op->parent).count;
    if (!begin || !count || !expr_is_constant(begin) || !expr_is_constant(count))
        return diag_error(m->diag, op->loc, "a thread_group needs two constants: its first "
                          "thread and how many there are");
    if (!verify_warps(m, op, "first thread", begin->constant, 0) ||
        !verify_warps(m, op, "number of threads", count->constant, WARP))
        return false;
    if (begin->constant >= around || count->constant > around - begin->constant)
        return diag_error(m->diag, op->loc, "a thread_group of %lld threads from thread %lld "
                          "on, %s has %lld", (long long)count->constant, (long long)begin->constant,
                          region_thread_group(op->parent) ? "the one around it" : "the block",
                          (long long)around);
    if (op->region_count != 1 || !region_yield(op->regions[0]))
        return diag_error(m->diag, op->loc, "a thread_group has one region, with a yield");
    const Op *yield = region_yield(op->regions[0]);
    return !yield->operand_count ||
           diag_error(m->diag, yield->loc, "yield of %u values in a thread_group, which "
                      "carries none", yield->operand_count);
}

/* Ending a part of the block would leave other threads waiting at barriers that count
 * it: the language gives such programs no meaning. */
bool verify_exit(Module *m, const Op *op)
{
    const Op *group = region_thread_group(op->parent);
    if (program_blocks(op->parent->program) > 1)
        return diag_error(m->diag, op->loc, "exit in a program with clusters: the other blocks "
                          "of the cluster may access this one's shared memory, or wait for it");
    if (!group)
        return true;
    diag_error(m->diag, op->loc, "exit ends the whole block, a thread_group runs on %lld "
               "threads of it", (long long)region_threads(op->parent).count);
    return diag_note(m->diag, group->loc, "the thread_group begins here");
}
