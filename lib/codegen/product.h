/* Functions of wgmma: they differ in the number of their words, so they are made as they are
 * needed, beside the rows of intrinsics.def.
 *
 *     multiply   %sums = @tilus.wgmma.m64n64k16.f32.f16.f16.sd(i32 form, sums, a, b)
 *     wait       %sums = @tilus.wgmma.wait.0.32(i32 form, sums)
 *     tie        %words = @tilus.wgmma.tie.32(i32 form, words)
 *     uniform    %word = @tilus.wgmma.uniform(i32 form, word)
 *
 * Sums are i32 words; a is 4 words or a descriptor, b a descriptor, i64. The form is a
 * constant that says all of it to the CPU engine; PTX has it in its text. What a wait gives
 * is what it took: no use of the sums comes before it. A tie, an empty text, keeps words
 * computed before it: registers that wgmma reads must be written ahead of its fence. A word that
 * all lanes have becomes uniform by redux.sync: ptxas computes with it in uniform registers, which
 * descriptors must be in, where it would move each descriptor's two words there else. */
#ifndef TILUS_CODEGEN_PRODUCT_H
#define TILUS_CODEGEN_PRODUCT_H

#include "codegen/internal.h"
#include "select/wgmma.h"

typedef enum ProductKind { PRODUCT_MULTIPLY, PRODUCT_WAIT, PRODUCT_TIE, PRODUCT_UNIFORM } ProductKind;

typedef struct ProductForm {
    ProductKind kind;
    unsigned words;             /* of the sums, or the words that are kept */
    unsigned pending;           /* of a wait */
    const Wgmma *row;           /* of a multiply, as all below */
    int64_t n;
    bool in_registers;          /* a is */
    bool has_sums;              /* c + a * b; false: a * b, and no words are passed */
    bool negate;
    bool mn_major[2];
} ProductForm;

enum { PRODUCT_A_WORDS = 4 };

/* The form as a number, and back; words of no multiply are not in it. */
uint32_t product_pack(const ProductForm *form);
ProductForm product_unpack(uint32_t form);

struct ProductFunction {
    ProductForm form;
    LLVMValueRef function;
    ProductFunction *next;
};

/* Calls the function of this form with `count` arguments after the form. */
LLVMValueRef call_product(Codegen *cg, const ProductForm *form, LLVMValueRef *args,
                          unsigned count);

/* Keeps `count` words computed before what comes after: replaces them. */
void product_tie(Codegen *cg, LLVMValueRef *words, unsigned count);

/* The word, which all lanes of a warp have the same, as one that is known to be uniform. */
LLVMValueRef product_uniform(Codegen *cg, LLVMValueRef word);

/* The least PTX version that the functions in use need; 0 without any. */
unsigned product_ptx(const Codegen *cg);

/* Fills the bodies with inline PTX (product.c). */
void product_fill(Codegen *cg);

#endif
