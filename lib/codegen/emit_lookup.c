/* lookup and lookup_shared. In registers a table is looked up by a plan of words
 * (lib/cast/codebook.c). In shared memory a group of codes, bits side by side in a
 * thread's words, is the number of a row, which the plan addresses (select/table.h). */
#include "codegen/cast.h"

#include "codegen/convert_build.h"
#include "codegen/memory.h"
#include "ir/lookup.h"

/* ---- in registers ------------------------------------------------------------ */

enum { TABLE_WORDS_MAX = (1 << LOOKUP_REGISTER_BITS_MAX) / 2 };

/* The codes' words from `in` on, and the table's. */
static bool look_up_run(Codegen *cg, const Op *op, const CastPlan *plan, LLVMValueRef *in,
                        LLVMValueRef *out)
{
    const Type *table = op->operands[1]->type;
    LLVMValueRef words[LOOKUP_REGISTER_BITS_MAX + TABLE_WORDS_MAX];
    unsigned count = cast_source_words(&plan->query);
    memcpy(words, in, count * sizeof *words);
    memcpy(words + count, lowered_words(op->operands[1]),
           (size_t)type_thread_words(table) * sizeof *words);
    return emit_cast_plan(cg, op->loc, plan, words, out);
}

bool emit_lookup(Codegen *cg, const Op *op, const Plan *plan)
{
    const CastRuns *runs = &plan->cast.codes;
    LLVMValueRef *in = lowered_words(op->operands[0]);
    LLVMValueRef *out = words_new(cg, op->results[0]->type);
    for (unsigned i = 0; i < runs->count; i++)
        if (!look_up_run(cg, op, runs->plans[i],
                         in + i * CAST_ELEMENTS_MAX / 32 * dtype_bits(runs->from),
                         out + i * CAST_ELEMENTS_MAX / 32 * dtype_bits(runs->to)))
            return false;
    lower_words(cg, op->results[0], out);
    return true;
}

/* ---- in shared memory ---------------------------------------------------------- */

typedef struct Rows {
    Codegen *cg;
    const Op *op;
    const TablePlan *plan;
    LLVMValueRef *codes;                /* words */
    LLVMValueRef base;                  /* the address of the first row */
    LLVMValueRef copy;                  /* bytes to the thread's copy of a row, i32 */
} Rows;

/* Builds the bytes to the copy of a row that the thread reads. */
static LLVMValueRef build_copy(const Rows *r)
{
    Codegen *cg = r->cg;
    const LookupTable *table = &r->plan->table;
    if (table->copies == 1)
        return const_i32_of(cg, 0);
    uint32_t copies = (uint32_t)table->copies, stride = (uint32_t)r->plan->stride[table->group];
    LLVMValueRef copy = LLVMBuildURem(cg->builder, cg->thread, const_i32_of(cg, copies), "");
    return LLVMBuildMul(cg->builder, copy, const_i32_of(cg, stride), "");
}

static Rows rows_open(Codegen *cg, const Op *op, const TablePlan *plan)
{
    const Lowered *l = lowered(op->operands[1]);
    Rows r = {.cg = cg, .op = op, .plan = plan, .codes = lowered_words(op->operands[0])};
    LLVMValueRef first = mul_i64(cg, l->first, const_i64_of(cg, plan->bits / 8));
    r.base = LLVMBuildGEP2(cg->builder, cg->i8, l->value, &first, 1, "");
    r.copy = build_copy(&r);
    return r;
}

/* Builds the bytes to the row of the group from `bit` on: its codes one after another. */
static LLVMValueRef add_codes(const Rows *r, int64_t bit)
{
    Codegen *cg = r->cg;
    LLVMValueRef sum = r->copy;
    unsigned group = r->plan->table.group, code_bits = r->plan->code_bits;
    for (unsigned i = 0; i < group; i++) {
        uint32_t stride = (uint32_t)r->plan->stride[group - 1 - i];
        LLVMValueRef code = emit_get_bits(cg, r->codes, bit + i * code_bits, code_bits);
        code = LLVMBuildMul(cg->builder, code, const_i32_of(cg, stride), "");
        sum = LLVMBuildAdd(cg->builder, sum, code, "");
    }
    return sum;
}

/* Puts a byte of codes above the byte of the copy. */
static LLVMValueRef permute_address(const Rows *r, int64_t bit)
{
    enum { COPY_BYTE = 4, ZERO_BYTE = 5 };
    uint32_t selector = COPY_BYTE | (uint32_t)(bit % 32 / 8) << 4 | ZERO_BYTE << 8 |
                        ZERO_BYTE << 12;
    LLVMValueRef args[] = {r->codes[bit / 32], r->copy, const_i32_of(r->cg, selector)};
    return call_intrinsic(r->cg, INTR_prmt, r->op->loc, args, 3);
}

/* Puts codes, from bit `log` on, above the bits of the copy. */
static LLVMValueRef mask_address(const Rows *r, int64_t bit, unsigned log)
{
    enum { AND_OR = 0xea };
    LLVMBuilderRef b = r->cg->builder;
    unsigned at = (unsigned)(bit % 32), bits = r->plan->table.group * r->plan->code_bits;
    LLVMValueRef word = r->codes[bit / 32];
    if (at + bits > 32) {
        word = build_shl(b, emit_get_bits(r->cg, r->codes, bit, bits), log);
        return LLVMBuildOr(b, word, r->copy, "");
    }
    word = at > log ? build_lshr(b, word, at - log) : at < log ? build_shl(b, word, log - at)
                                                               : word;
    uint32_t mask = (uint32_t)(((UINT64_C(1) << bits) - 1) << log);
    LLVMValueRef args[] = {word, const_i32_of(r->cg, mask), r->copy,
                           const_i32_of(r->cg, AND_OR)};
    return call_intrinsic(r->cg, INTR_lop3, r->op->loc, args, 4);
}

/* Builds the bytes from the first row to the row, and copy, of the group from `bit` on; an
 * i32. */
static LLVMValueRef row_offset(const Rows *r, int64_t bit)
{
    switch (r->plan->address) {
    case ROW_BY_PRMT: return permute_address(r, bit);
    case ROW_BY_LOP3:
        return mask_address(r, bit, (unsigned)__builtin_ctzll((uint64_t)table_row_bytes(r->plan)));
    case ROW_BY_SUM: break;
    }
    return add_codes(r, bit);
}

/* Loads a row's elements, those from `done` on, into the result's bits. */
static void load_part(const Rows *r, LLVMValueRef row, unsigned done, int64_t slot,
                      LLVMValueRef *out)
{
    Codegen *cg = r->cg;
    LLVMBuilderRef b = cg->builder;
    const TablePlan *p = r->plan;
    unsigned bits = p->width * p->bits, in_row = r->op->operands[1]->type->rank - 1;
    LLVMValueRef at = const_i32_of(cg, (uint32_t)(done ? done * p->stride[in_row] : 0));
    LLVMValueRef from = LLVMBuildGEP2(b, cg->i8, row, &at, 1, "");
    LLVMTypeRef type = chunk_type(cg, bits / 8);
    LLVMValueRef v = LLVMBuildLoad2(b, type, from, "");
    LLVMSetAlignment(v, bits / 8);
    if (bits <= 32) {
        v = bits < 32 ? LLVMBuildZExt(b, v, cg->i32, "") : v;
        emit_set_bits(cg, out, (slot + done) * p->bits, bits, v);
        return;
    }
    for (unsigned i = 0; i < bits / 32; i++)
        out[((slot + done) * p->bits) / 32 + i] =
            LLVMBuildExtractElement(b, v, const_i32_of(cg, i), "");
}

bool emit_lookup_shared(Codegen *cg, const Op *op, const Plan *plan)
{
    const TablePlan *p = &plan->table;
    const Type *result = op->results[0]->type;
    LLVMValueRef *out = words_new(cg, result);
    Rows r = rows_open(cg, op, p);
    for (int64_t slot = 0; slot < result->layout->slots; slot += p->table.group) {
        LLVMValueRef offset = row_offset(&r, slot * p->code_bits);
        if (!offset)
            return false;
        LLVMValueRef row = LLVMBuildGEP2(cg->builder, cg->i8, r.base, &offset, 1, "");
        for (unsigned done = 0; done < p->table.group; done += p->width)
            load_part(&r, row, done, slot, out);
    }
    lower_words(cg, op->results[0], out);
    return true;
}
