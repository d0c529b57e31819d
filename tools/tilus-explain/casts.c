/* Cast plans, word by word: which bits of which codes stand where. */
#include "tool.h"

#include "cast/bits.h"
#include "codegen/codegen.h"
#include "select/cast_plans.h"

#include <setjmp.h>
#include <stdlib.h>

/* ---- words --------------------------------------------------------------------------- */

/* Returns true when bit `i` goes on the field that begins at bit `high`, which is higher. */
static bool goes_on(const CastWord *w, unsigned high, unsigned i)
{
    const CastBit *a = &w->bits[high], *b = &w->bits[i];
    if (a->kind != b->kind)
        return false;
    switch ((CastBitKind)a->kind) {
    case CAST_BIT_CODE: return a->element == b->element && a->bit == b->bit + (high - i);
    case CAST_BIT_ELEMENT: return a->element == b->element;
    case CAST_BIT_CONSTANT:
    case CAST_BIT_MIXED:
    case CAST_BIT_OTHER: break;
    }
    return true;
}

static json_t *constant_text(const CastWord *w, unsigned high, unsigned low)
{
    char text[33];
    unsigned n = 0;
    for (unsigned i = high + 1; i-- > low;)
        text[n++] = w->bits[i].bit ? '1' : '0';
    text[n] = 0;
    return doc_text(text);
}

/* Bits low .. high, of one kind. */
static json_t *describe_field(Explain *e, const CastWord *w, unsigned high, unsigned low)
{
    static const char *const kinds[] = {
        [CAST_BIT_CONSTANT] = "constant", [CAST_BIT_CODE] = "code", [CAST_BIT_ELEMENT] = "element",
        [CAST_BIT_MIXED] = "mixed",       [CAST_BIT_OTHER] = "other"};
    const CastBit *b = &w->bits[low];
    bool has_element = b->kind == CAST_BIT_CODE || b->kind == CAST_BIT_ELEMENT;
    json_t *field = json_object();
    doc_put(e, field, "width", json_integer(high - low + 1));
    doc_put(e, field, "kind", doc_text(kinds[b->kind]));
    doc_put(e, field, "element", has_element ? json_integer(b->element) : json_null());
    doc_put(e, field, "low", b->kind == CAST_BIT_CODE ? json_integer(b->bit) : json_null());
    doc_put(e, field, "value",
            b->kind == CAST_BIT_CONSTANT ? constant_text(w, high, low) : json_null());
    return field;
}

/* The fields of a word, the highest bits first. */
static json_t *list_fields(Explain *e, const CastWord *w)
{
    json_t *fields = json_array();
    for (unsigned high = 32; high-- > 0;) {
        unsigned low = high;
        while (low > 0 && goes_on(w, high, low - 1))
            low--;
        doc_add(e, fields, describe_field(e, w, high, low));
        high = low;
    }
    return fields;
}

/* ---- plans ----------------------------------------------------------------------------- */

static json_t *describe_word(Explain *e, const CastPlan *plan, const CastWord *words, unsigned node)
{
    Text text;
    Module *m = e->module;
    json_t *word = json_object();
    text_init(&text, &m->scratch);
    if (plan->ops[node].code == CAST_input)
        text_printf(&text, "input %u", plan->ops[node].imm);
    else
        cast_print_op(&text, plan, node);
    doc_put(e, word, "number", json_integer(node));
    doc_put(e, word, "text", doc_text(text_string(&text)));
    doc_put(e, word, "fields", list_fields(e, &words[node]));
    return word;
}

static void put_words(Explain *e, json_t *cast, const CastPlan *plan)
{
    json_t *list = json_array(), *out = json_array();
    const CastWord *words = cast_bits(&e->module->scratch, plan);
    for (unsigned i = 0; i < plan->count; i++)
        if (plan->ops[i].code != CAST_constant)
            doc_add(e, list, describe_word(e, plan, words, i));
    for (unsigned i = 0; i < plan->out_words; i++)
        doc_add(e, out, json_integer(plan->out[i]));
    doc_put(e, cast, "words", list);
    doc_put(e, cast, "out", out);
    doc_put(e, cast, "operations", json_integer(cast_count(plan).total));
}

static void take_plan(void *data, const Op *op, const CastQuery *query, const CastPlan *plan)
{
    Explain *e = data;
    Module *m = e->module;
    json_t *cast = json_object();
    doc_put(e, cast, "line", json_integer(op->loc.line));
    doc_put(e, cast, "from", doc_text(dtype_name(query->from)));
    doc_put(e, cast, "to", doc_text(dtype_name(query->to)));
    doc_put(e, cast, "packed",
            query->packed != DTYPE_none ? doc_text(dtype_name(query->packed)) : json_null());
    doc_put(e, cast, "elements", json_integer(query->elements));
    doc_put(e, cast, "family",
            plan ? doc_text(cast_family_name(&m->scratch, plan)) : json_null());
    if (plan)
        put_words(e, cast, plan);
    doc_add(e, json_object_get(e->doc, "casts"), cast);
}

/* Planning jumps to the module's guard when memory runs out. */
bool explain_casts(Explain *e)
{
    Module *m = e->module;
    char *plans = tilus_cast_plans(m, e->settings->cpu, true);
    if (!plans)
        return false;
    doc_put(e, e->doc, "cast_plans", doc_text(plans));
    tilus_free(plans);
    if (!doc_put(e, e->doc, "casts", json_array()) || setjmp(m->diag->oom.jump))
        return !(e->no_memory = true);
    ArenaMark mark = arena_mark(&m->scratch);
    bool ok = cast_plans_visit(m, codegen_target_sm(m, e->settings->cpu), take_plan, e);
    arena_reset(&m->scratch, mark);
    return ok;
}
