/* check-hazards: says which accesses race, or may. It changes nothing.
 *
 *     store_shared %x, %s[0]
 *     %y = load_shared %s[0] : f32[32] @ replicate(32).local(32)
 *
 *     error: race: load_shared reads bytes of %s that store_shared has written,
 *            and no synchronize lies between
 *
 * A race that is sure is an error. What is not proved is a missed remark, or with
 * option `strict` an error too. */
#include "passes/check_hazards.h"

#include "passes/report.h"

static const char *const verbs[] = {"reads", "writes", "atomically changes"};
static const char *const infinitives[] = {"read", "write", "atomically change"};
static const char *const participles[] = {"read", "written", "atomically changed"};

static const char *op_name(const Op *op)
{
    return op_info[op->code].name;
}

static const char *memory_name(Module *m, const Value *memory)
{
    return memory && memory->name ? arena_printf(&m->scratch, "%%%s", memory->name)
                                  : "the memory";
}

/* Says why the copy `first` may still be in flight at `second`. */
static const char *missing_wait(Module *m, const Hazard *h)
{
    Completion c = op_completion(h->first);
    if (c == COMPLETION_MBARRIER && !h->proved)
        return "no proof found that its phase has ended";
    return completion_missing(&m->scratch, h->first, h->second);
}

/* Names the op of the earlier access, seen from the later one. */
static const char *first_name(const Hazard *h)
{
    return h->first == h->second ? "an earlier iteration of it" : op_name(h->first);
}

/* Describes a race; a proved one as a fact. */
static const char *pair_text(Module *m, const Hazard *h)
{
    const char *memory = memory_name(m, h->memory);
    const char *may = h->proved ? "" : "may ", *name = op_name(h->second);
    const char *verb = (h->proved ? verbs : infinitives)[h->second_mode];
    if (h->kind == HAZARD_COPY)
        return arena_printf(&m->scratch, "%s %s%s bytes of %s that %s %s, and %s", name, may,
                            verb, memory, first_name(h),
                            h->first_mode == MODE_READ ? "still reads" : "still writes",
                            missing_wait(m, h));
    return arena_printf(&m->scratch, "%s %s%s bytes of %s that %s has %s, and no "
                        "synchronize lies between", name, may, verb, memory,
                        first_name(h), participles[h->first_mode]);
}

static const char *blocks_text(Module *m, const Hazard *h)
{
    return arena_printf(&m->scratch, "%s may %s bytes of %s that %s of another block %s, and "
                        "blocks are not ordered", op_name(h->second),
                        infinitives[h->second_mode], memory_name(m, h->memory),
                        op_name(h->first), verbs[h->first_mode]);
}

static const char *unfinished_text(Module *m, const Hazard *h)
{
    const char *may = h->proved ? "is" : "may be";
    if (h->second && h->second->code == OP_allocate_shared)
        return arena_printf(&m->scratch, "%s is allocated again while a %s into it %s in flight",
                            memory_name(m, h->memory), op_name(h->first), may);
    return arena_printf(&m->scratch, "the block ends while this %s %s in flight",
                        op_name(h->first), may);
}

static const char *phase_text(Module *m, const Hazard *h)
{
    const char *name = memory_name(m, h->memory);
    if (op_sync(h->first) == SYNC_WAIT)
        return arena_printf(&m->scratch, "this mbarrier_wait may wait for another phase of %s than "
                            "it says: no proof found that the phases before it have ended and "
                            "that the one behind it has not", name);
    return arena_printf(&m->scratch, "this %s may count in another phase of %s: no proof found "
                        "that the phases before it have ended", op_name(h->first), name);
}

const char *hazard_text(Module *m, const Hazard *h)
{
    switch (h->kind) {
    case HAZARD_ORDER:
    case HAZARD_COPY: return pair_text(m, h);
    case HAZARD_VALUES:
        return arena_printf(&m->scratch, "threads of this %s may write different values to a "
                            "byte of %s", op_name(h->first), memory_name(m, h->memory));
    case HAZARD_BLOCKS: return blocks_text(m, h);
    case HAZARD_UNFINISHED: return unfinished_text(m, h);
    case HAZARD_PHASE: return phase_text(m, h);
    case HAZARD_REMOTE:
        return arena_printf(&m->scratch, "no proof looks at what this %s does to other blocks of "
                            "the cluster", op_name(h->first));
    case HAZARD_UNKNOWN: break;
    }
    return "loops are nested too deep here, or too many accesses are not ordered, to look for "
           "races";
}

/* Places the message at the later access, if that is an op of the text. */
static Loc hazard_loc(const Hazard *h)
{
    bool later = h->second && h->second->code != OP_exit;
    return later ? h->second->loc : h->first->loc;
}

static void report_error(Module *m, const Hazard *h, const char *text)
{
    diag_error(m->diag, hazard_loc(h), "%s%s", h->proved ? "race: " : "not proved: ", text);
    if (!h->second || h->first == h->second)
        return;
    if (h->second->code == OP_exit)
        diag_note(m->diag, h->second->loc, "it ends here");
    else
        diag_note(m->diag, h->first->loc, "%s is here", op_name(h->first));
}

/* Reports what is not proved: as a remark, and where the user wants it as a warning. Returns
 * true unless such a warning is an error. */
static bool report_unproved(Module *m, const Hazard *h, const char *text)
{
    bool other = h->second && h->first != h->second;
    Loc there = other && h->second->code == OP_exit ? h->second->loc : h->first->loc;
    const char *name = other && h->second->code == OP_exit ? "exit" : op_name(h->first);
    const char *where = other ? arena_printf(&m->scratch, " (%s is on line %u)", name,
                                             there.line) : "";
    REMARK_AT(m->remarks, m->diag, hazard_loc(h), HazardUnproved, R(text), R(where),
              R(other ? there.line : 0));
    return diag_warning(m->diag, WARNING_HAZARDS, hazard_loc(h), "not proved: %s%s", text, where);
}

PassResult pass_check_hazards(Program *p)
{
    Module *m = p->module;
    ArenaMark mark = arena_mark(&m->scratch);
    Hazards found = hazards_of(p);
    bool failed = false;
    for (unsigned i = 0; i < found.count; i++) {
        const Hazard *h = &found.found[i];
        const char *text = hazard_text(m, h);
        bool error = h->proved || pass_option(m, PASS_OPTION_check_hazards_strict);
        stat_add(m, h->proved ? STAT_check_hazards_proved : STAT_check_hazards_unproved, 1);
        if (error)
            report_error(m, h, text);
        failed |= error || !report_unproved(m, h, text);
    }
    stat_add(m, STAT_check_hazards_pairs, found.pairs);
    arena_reset(&m->scratch, mark);
    return failed ? PASS_FAILED : PASS_UNCHANGED;
}
