/* The tables of ops and attributes. */
#include "ir/op_info.h"

#include "support/ascii.h"

#include <string.h>
#include <threads.h>

static const char *const reduce_words[] = {
#define REDUCE(id, spelling) spelling,
#include "ir/words.def"
};

static const char *const predicate_words[] = {
#define PREDICATE(id, spelling) spelling,
#include "ir/words.def"
};

static const char *const order_words[] = {
#define ORDER(id, spelling) spelling,
#include "ir/words.def"
};

static const char *const scope_words[] = {
#define SCOPE(id, spelling) spelling,
#include "ir/words.def"
};

static const char *const evict_words[] = {
#define EVICT(id, spelling) spelling,
#include "ir/words.def"
};

static const char *const blocks_words[] = {
#define BLOCKS(id, spelling) spelling,
#include "ir/words.def"
};

static const char *const reduction_words[] = {
#define REDUCTION(id, spelling) spelling,
#include "ir/words.def"
};

static const char *const flag_words[] = {
#define FLAG(id, spelling) spelling,
#include "ir/words.def"
};

static const char *const drain_words[] = {
#define DRAIN(id, spelling) spelling,
#include "ir/words.def"
};

static const char *const via_words[] = {"",
#define VIA(id, spelling, op, matrices, transposed) spelling,
#include "ir/via.def"
};

const AttrInfo attr_info[ATTR_COUNT] = {
#define EXPR ATTR_VALUE_EXPR, NULL, 0
#define EXPRS ATTR_VALUE_EXPRS, NULL, 0
#define NUMBER ATTR_VALUE_NUMBER, NULL, 0
#define TEXT ATTR_VALUE_TEXT, NULL, 0
#define INT ATTR_VALUE_INT, NULL, 0
#define INTS ATTR_VALUE_INTS, NULL, 0
#define SCALAR ATTR_VALUE_SCALAR, NULL, 0
#define ENUM(list) ATTR_VALUE_WORD, list##_words, sizeof list##_words / sizeof *list##_words
#define ATTR(id, spelling, value) [ATTR_##id] = {spelling, value},
#include "ir/attrs.def"
#undef EXPR
#undef EXPRS
#undef NUMBER
#undef TEXT
#undef INT
#undef INTS
#undef SCALAR
#undef ENUM
};

#define BIT(a) (UINT64_C(1) << ATTR_##a)
#define A0 0
#define A1(a) BIT(a)
#define A2(a, b) (BIT(a) | BIT(b))
#define A3(a, b, c) (BIT(a) | BIT(b) | BIT(c))
#define A4(a, b, c, d) (A2(a, b) | A2(c, d))
#define A5(a, b, c, d, e) (A3(a, b, c) | A2(d, e))
#define A6(a, b, c, d, e, f) (A3(a, b, c) | A3(d, e, f))
#define K0 0, 0, {0}
#define K1(a) 1, 1, {OPERAND_##a}
#define K2(a, b) 2, 2, {OPERAND_##a, OPERAND_##b}
#define K3(a, b, c) 3, 3, {OPERAND_##a, OPERAND_##b, OPERAND_##c}
#define K2_3(a, b, c) 2, 3, {OPERAND_##a, OPERAND_##b, OPERAND_##c}
#define K1_N(a) 1, OPERANDS_ANY, {OPERAND_##a}
#define K2_N(a) 2, OPERANDS_ANY, {OPERAND_##a}
#define KN 0, OPERANDS_ANY, {0}
#define R(n) {MODE_READ, ACCESS_AT_OFFSETS, n}
#define W(n) {MODE_WRITE, ACCESS_AT_OFFSETS, n}
#define ATOMIC(n) {MODE_ATOMIC, ACCESS_AT_OFFSETS, n}
#define S(n) {MODE_READ, ACCESS_AT_SOURCE, n}
#define LOOKUP(n) {MODE_READ, ACCESS_AT_DATA, n}
#define ALL(n) {MODE_READ, ACCESS_AT_ALL, n}
#define NOW COMPLETION_NOW, 0
#define GROUP COMPLETION_GROUP, 0
#define PRODUCT COMPLETION_PRODUCT, 0
#define BULK_GROUP COMPLETION_BULK_GROUP, 0
#define MBARRIER(n) COMPLETION_MBARRIER, n
#define M0 {0}
#define M(threads, completion, ...)                                           \
    {ACCESS_BY_##threads, completion, COUNT(__VA_ARGS__), {__VA_ARGS__}}
#define COUNT(...) sizeof((AccessRow[]){__VA_ARGS__}) / sizeof(AccessRow)
#define SYNC_ROW_NONE {SYNC_NONE, COMPLETION_NOW}
#define SYNC_ROW_BARRIER {SYNC_BARRIER, COMPLETION_NOW}
#define SYNC_ROW_CLUSTER {SYNC_CLUSTER, COMPLETION_NOW}
#define SYNC_ROW_GRID {SYNC_GRID, COMPLETION_NOW}
#define SYNC_ROW_COMMIT(c) {SYNC_COMMIT, COMPLETION_##c}
#define SYNC_ROW_WAIT(c) {SYNC_WAIT, COMPLETION_##c}
#define SYNC_ROW_INIT(c) {SYNC_INIT, COMPLETION_##c}
#define SYNC_ROW_ARRIVE(c) {SYNC_ARRIVE, COMPLETION_##c}
#define SYNC_ROW_ACQUIRE {SYNC_ACQUIRE, COMPLETION_NOW}
#define SYNC_ROW_RELEASE {SYNC_RELEASE, COMPLETION_NOW}
#define SYNC_ROW_LAUNCH {SYNC_LAUNCH, COMPLETION_NOW}
#define SYNC_ROW_LAUNCH_WAIT {SYNC_LAUNCH_WAIT, COMPLETION_NOW}
#define OP(id, out, operands, attrs, effect, memory, sync, type, summary)     \
    [OP_##id] = {#id, RESULT_##out, operands, attrs, EFFECT_##effect, memory, \
                 SYNC_ROW_##sync, RULE_##type, summary},

const OpInfo op_info[OP_COUNT] = {
#include "ir/ops.def"
};

#undef R
#undef W
#undef S
#undef M

/* ---- names of attributes --------------------------------------------------- */

enum { ATTR_NAME = 24 };
static char attr_names[ATTR_COUNT][ATTR_NAME];

static void write_attr_names(void)
{
    static const char *const identifiers[ATTR_COUNT] = {
#define ATTR(id, spelling, value) #id,
#include "ir/attrs.def"
    };
    for (AttrKind kind = 0; kind < ATTR_COUNT; kind++) {
        const char *spelling = attr_info[kind].spelling;
        const char *name = *spelling ? spelling : identifiers[kind];
        for (unsigned i = 0; name[i] && i + 1 < ATTR_NAME; i++)
            attr_names[kind][i] = ascii_lower(name[i]);
    }
}

const char *attr_name(AttrKind kind)
{
    static once_flag once = ONCE_FLAG_INIT;
    call_once(&once, write_attr_names);
    return attr_names[kind];
}

AttrKind attr_find(const char *name)
{
    AttrKind kind = 0;
    while (kind < ATTR_COUNT && strcmp(attr_name(kind), name) != 0)
        kind++;
    return kind;
}

unsigned attr_word_find(AttrKind kind, const char *word)
{
    const AttrInfo *info = &attr_info[kind];
    unsigned i = 0;
    while (i < info->word_count && (!*info->words[i] || strcmp(info->words[i], word) != 0))
        i++;
    return i;
}

OpCode op_find(const char *name, size_t len)
{
    for (OpCode code = 0; code < OP_COUNT; code++)
        if (strlen(op_info[code].name) == len && !memcmp(op_info[code].name, name, len))
            return code;
    return OP_COUNT;
}
