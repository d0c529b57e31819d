/* lookup and lookup_shared. In registers a table is looked up by a plan of words
 * (lib/cast/codebook.c). In shared memory a group of codes, bits side by side in a
 * thread's words, is the number of a row:
 *
 *     address = first row + row number * bytes from row to row + the thread's copy
 *
 * Rows 256 bytes apart make a whole byte of codes and the copy an address by one
 * `prmt`; rows a power of two apart, by a shift and a `lop3`. */
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
    LookupTable table;
    unsigned code_bits, bits;           /* of a code, of an element */
    int64_t stride[LIMIT_RANK];         /* of the table, in bytes */
    LLVMValueRef *codes;                /* words */
    LLVMValueRef base;                  /* the address of the first row */
    LLVMValueRef copy;                  /* bytes to the thread's copy of a row, i32 */
    int64_t copy_end;                   /* more than `copy` ever is */
    unsigned width;                     /* elements that one load reads, a power of two */
} Rows;

static bool is_power_of_two(int64_t n)
{
    return n > 0 && !(n & (n - 1));
}

/* Builds the bytes to the copy of a row that the thread reads. */
static LLVMValueRef build_copy(const Rows *r)
{
    Codegen *cg = r->cg;
    if (r->table.copies == 1)
        return const_i32_of(cg, 0);
    uint32_t copies = (uint32_t)r->table.copies;
    uint32_t stride = (uint32_t)r->stride[r->table.group];
    LLVMValueRef copy = LLVMBuildURem(cg->builder, cg->thread, const_i32_of(cg, copies), "");
    return LLVMBuildMul(cg->builder, copy, const_i32_of(cg, stride), "");
}

/* Returns true when loads of `width` elements are aligned in every row, and inside it. */
static bool is_width(const Rows *r, Module *m, const Value *memory, unsigned width)
{
    int64_t bytes = width * r->bits / 8;
    bool ok = access_base_alignment(memory) % (8 * bytes) == 0 &&
              access_first_alignment(m, memory) % width == 0;
    for (unsigned d = 0; ok && d < memory->type->rank; d++) {
        bool in_row = r->table.has_row && d + 1 == memory->type->rank;
        ok = in_row ? r->stride[d] * 8 == r->bits : r->stride[d] % bytes == 0;
    }
    return ok;
}

static Rows rows_open(Codegen *cg, const Op *op)
{
    const Value *memory = op->operands[1];
    const Lowered *l = lowered(memory);
    Rows r = {.cg = cg, .op = op, .codes = lowered_words(op->operands[0]),
              .code_bits = dtype_bits(op->operands[0]->type->dtype),
              .bits = dtype_bits(memory->type->dtype), .width = 1};
    LLVMValueRef first = mul_i64(cg, l->first, const_i64_of(cg, r.bits / 8));
    lookup_table(memory->type, &r.table);
    for (unsigned d = 0; d < memory->type->rank; d++)
        r.stride[d] = type_stride(cg->module, memory->type, d)->constant * r.bits / 8;
    r.base = LLVMBuildGEP2(cg->builder, cg->i8, l->value, &first, 1, "");
    r.copy = build_copy(&r);
    r.copy_end = r.table.copies == 1 ? 1 : (r.table.copies - 1) * r.stride[r.table.group] + 1;
    while (2 * r.width <= r.table.group && is_width(&r, cg->module, memory, 2 * r.width))
        r.width *= 2;
    return r;
}

/* Returns true when a group's codes, taken as one number, count rows at equal distances. */
static bool counts_rows(const Rows *r)
{
    unsigned last = r->table.group - 1;
    for (unsigned d = 0; d < last; d++)
        if (r->stride[d] != r->stride[last] << (last - d) * r->code_bits)
            return false;
    return true;
}

/* Builds the bytes to the row of the group from `bit` on: its codes one after another. */
static LLVMValueRef add_codes(const Rows *r, int64_t bit)
{
    Codegen *cg = r->cg;
    LLVMValueRef sum = r->copy;
    for (unsigned i = 0; i < r->table.group; i++) {
        uint32_t stride = (uint32_t)r->stride[r->table.group - 1 - i];
        LLVMValueRef code = emit_get_bits(cg, r->codes, bit + i * r->code_bits, r->code_bits);
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
    unsigned at = (unsigned)(bit % 32), bits = r->table.group * r->code_bits;
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
    enum { PERMUTED_BYTES = 256 };
    unsigned bits = r->table.group * r->code_bits;
    int64_t apart = r->stride[r->table.group - 1];
    if (!counts_rows(r) || !is_power_of_two(apart) || r->copy_end > apart)
        return add_codes(r, bit);
    if (apart == PERMUTED_BYTES && bits == 8 && bit % 8 == 0)
        return permute_address(r, bit);
    return mask_address(r, bit, (unsigned)__builtin_ctzll((uint64_t)apart));
}

/* Loads a row's elements, those from `done` on, into the result's bits. */
static void load_part(const Rows *r, LLVMValueRef row, unsigned done, int64_t slot,
                      LLVMValueRef *out)
{
    Codegen *cg = r->cg;
    LLVMBuilderRef b = cg->builder;
    unsigned bits = r->width * r->bits, in_row = r->op->operands[1]->type->rank - 1;
    LLVMValueRef at = const_i32_of(cg, (uint32_t)(done ? done * r->stride[in_row] : 0));
    LLVMValueRef from = LLVMBuildGEP2(b, cg->i8, row, &at, 1, "");
    LLVMTypeRef type = chunk_type(cg, bits / 8);
    LLVMValueRef v = LLVMBuildLoad2(b, type, from, "");
    LLVMSetAlignment(v, bits / 8);
    if (bits <= 32) {
        v = bits < 32 ? LLVMBuildZExt(b, v, cg->i32, "") : v;
        emit_set_bits(cg, out, (slot + done) * r->bits, bits, v);
        return;
    }
    for (unsigned i = 0; i < bits / 32; i++)
        out[((slot + done) * r->bits) / 32 + i] =
            LLVMBuildExtractElement(b, v, const_i32_of(cg, i), "");
}

bool emit_lookup_shared(Codegen *cg, const Op *op)
{
    const Type *result = op->results[0]->type;
    LLVMValueRef *out = words_new(cg, result);
    Rows r = rows_open(cg, op);
    for (int64_t slot = 0; slot < result->layout->slots; slot += r.table.group) {
        LLVMValueRef offset = row_offset(&r, slot * r.code_bits);
        if (!offset)
            return false;
        LLVMValueRef row = LLVMBuildGEP2(cg->builder, cg->i8, r.base, &offset, 1, "");
        for (unsigned done = 0; done < r.table.group; done += r.width)
            load_part(&r, row, done, slot, out);
    }
    lower_words(cg, op->results[0], out);
    return true;
}
