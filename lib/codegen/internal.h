/* Internals that the files of lib/codegen share: the state of one compile, lowered
 * values, the helpers that emitters call, and the back end's entry points.
 *
 * Lowered values:
 *   scalar   one i64; of floats the code, an i32
 *   ptr      one ptr addrspace(1)
 *   REG      type_thread_words(type) values of type i32; element slot s of
 *            width w lies in bits [s * w, (s + 1) * w) of their concatenation,
 *            bits past the last element are unspecified
 *   GLOBAL   the base, the number of the first element, and an i64 for each
 *            extent and stride
 *   SHARED   as GLOBAL, with a ptr addrspace(3); extents and strides are constants
 *
 * One Codegen serves one compile in one thread. Its memory comes from the
 * module's scratch arena. */
#ifndef TILUS_CODEGEN_INTERNAL_H
#define TILUS_CODEGEN_INTERNAL_H

#include "codegen/codegen.h"
#include "memory/workspace.h"
#include "scalar/facts.h"
#include "select/bulk.h"
#include "select/drain.h"
#include "target/target.h"

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

/* ---- tables --------------------------------------------------------- */

/* The target called `name`, or NULL after an error that names those in existence. */
const Target *target_require(Module *m, const char *name);

typedef enum IntrinsicId {
#define INTRINSIC(id, name, signature, sm, ptx, convergent, how) INTR_##id,
#include "codegen/intrinsics.def"
    INTR_COUNT
} IntrinsicId;

/* The NVPTX back end's ways to fill a body; lib/cpu has a helper for each row. */
typedef enum BodyKind {
    BODY_NVVM, BODY_CALL, BODY_SHARED, BODY_ATOMIC, BODY_ASM, BODY_VOLATILE_ASM
} BodyKind;

typedef struct IntrinsicInfo {
    const char *name;       /* of the LLVM function, "tilus.barrier" */
    const char *signature;  /* result letters, ':', parameter letters */
    unsigned sm, ptx;       /* the least that have it */
    bool convergent;        /* all threads of a warp execute it together */
    BodyKind body;
    const char *text;               /* BODY_NVVM, BODY_CALL: the callee; else PTX */
    const char *constraints;        /* BODY_ASM, BODY_VOLATILE_ASM */
    LLVMAtomicRMWBinOp atomic;      /* BODY_ATOMIC */
} IntrinsicInfo;

extern const IntrinsicInfo intrinsic_info[INTR_COUNT];

/* LLVM's numbers of NVPTX's address spaces. */
enum { SPACE_ANY = 0, SPACE_GLOBAL = 1, SPACE_SHARED = 3, SPACE_CLUSTER = 7 };

/* ---- state ---------------------------------------------------------- */

enum { BARRIERS = LIMIT_BARRIERS + 1 };    /* of a block (PTX ISA, "bar"): one for all */

/* Scratch of some threads, from `offset` on in shared memory: of one op at a time. */
typedef struct ThreadScratch {
    ThreadRange threads;
    int64_t offset, bytes;
} ThreadScratch;

typedef struct SharedScratch {
    ThreadScratch *of;
    uint32_t count, capacity;
} SharedScratch;

/* How places become debug locations. */
typedef enum LineForm {
    LINES_INLINED,      /* as DWARF has them: of a function's op, with the calls */
    LINES_NUMBERED      /* with the number of the frame, for lines_location and lines_write */
} LineForm;

#define LINES_FILE "t"  /* the text's name in NUMBERED locations */

typedef struct ProductFunction ProductFunction;
typedef struct OpenLoop OpenLoop;

struct Codegen {
    Module *module;
    Diag *diag;                 /* the module's */
    const Target *target;
    LLVMContextRef context;
    LLVMModuleRef llvm;
    LLVMBuilderRef builder;
    LLVMDIBuilderRef lines;     /* NULL: instructions have no places in the text */
    LineForm line_form;
    LLVMMetadataRef scope;              /* of the program, while there are places */
    LLVMMetadataRef *function_scopes;   /* by the frame of their first call, or NULL */
    LLVMTargetMachineRef machine;
    unsigned opt_level;         /* 0 .. 3, what the user asked for */
    bool large;                 /* a program is past LIMIT_OPTIMIZED */
    bool chained;               /* a program has too long chains to be reassociated */
    ArenaMark mark;             /* of the module's scratch arena, when opened */
    bool failed;                /* LLVM reported an error ... */
    char *failure;              /* ... and its text, malloc'ed */
    LLVMTypeRef i1, i8, i16, i32, i64, f16, bf16, f32, f64, global_ptr, shared_ptr, cluster_ptr,
        any_ptr;

    LLVMValueRef intrinsics[INTR_COUNT];    /* declarations of those in use */
    ProductFunction *products;  /* functions of wgmma that are in use (product.h) */

    Program *program;           /* being lowered */
    const Op *op;               /* of it, or NULL */
    LLVMValueRef function;
    LLVMValueRef shared;        /* the block's shared memory, or NULL */
    ThreadRange threads;        /* those that run what is being lowered */
    LLVMValueRef thread;        /* the thread's index among them, i32 */
    LLVMValueRef first_thread;  /* the same, where their code begins (renew_thread) */
    LLVMValueRef warp;          /* its warp's, when first asked for (uniform_warp) */
    bool narrow;                /* numbers known to be i32 take one register: they are scarce */
    LLVMBasicBlockRef begin;    /* in which their code begins */
    OpenLoop *loops;            /* around what is being lowered, the innermost first (recurrence.h) */
    ThreadRange barriers[BARRIERS];     /* who waits at each barrier, the block at 0 */
    unsigned barrier_count;
    int64_t registers[WARPGROUPS];      /* of each thread (setmaxnreg) */
    Workspace workspace;        /* its tensors, in the function's last parameter */
    TensorMaps maps;            /* in the parameters after the arguments */
    int64_t shared_used;        /* bytes of shared memory so far, planned ones first */
    SharedScratch scratch;      /* after all shared tensors */
    int64_t operations;         /* unrolled, so far (LIMIT_OPERATIONS) */
};

typedef struct Lowered {
    const Type *type;
    LLVMValueRef value;         /* scalar, ptr, or the base of a memory tensor */
    LLVMValueRef first;         /* memory tensors: the first element's number there, of
                                   some parts not 0 */
    LLVMValueRef *words;        /* REG */
    LLVMValueRef extents[LIMIT_RANK], strides[LIMIT_RANK];  /* memory tensors */
    LLVMValueRef uniform;       /* shared memory: the first element's address as a uniform word, when
                                   first asked for (emit_wgmma.c) */
} Lowered;

/* ---- lowered values (lower.c) --------------------------------------- */

/* The lowered form of a value that was defined before. */
const Lowered *lowered(const Value *v);
/* Makes a lowered value for `v`, to be filled. */
Lowered *lower_value(Codegen *cg, Value *v);
/* The words of a REG value; sets those of `v`. */
LLVMValueRef *lowered_words(const Value *v);
void lower_words(Codegen *cg, Value *v, LLVMValueRef *words);

/* ---- words (words.c) ------------------------------------------------ */

/* Words for a value of REG type `t`: constants 0, for emit_set_bits to fill. */
LLVMValueRef *words_new(Codegen *cg, const Type *t);

/* Bits [bit, bit + nbits) of `words`, zero-extended: an i32, or an i64 when
 * nbits > 32. 1 <= nbits <= 64. */
LLVMValueRef emit_get_bits(Codegen *cg, LLVMValueRef *words, int64_t bit, unsigned nbits);

/* Puts `value` (an i32 or i64 as emit_get_bits gives, bits from `nbits` on zero)
 * into bits [bit, bit + nbits), which must still be zero. */
void emit_set_bits(Codegen *cg, LLVMValueRef *words, int64_t bit, unsigned nbits,
               LLVMValueRef value);

/* Gathers the bytes of `words` with these numbers, counted from 0, in a word: by at most three prmt, of
 * which words of neighboring bytes share those that interleave two words. NULL after an error. */
LLVMValueRef emit_gather_bytes(Codegen *cg, Loc at, LLVMValueRef *words, const int64_t bytes[4]);

/* ---- element by element (elementwise.c) ----------------------------- */

/* The result's code in one slot from the operands' codes there, each as
 * emit_get_bits gives it; or the result's word from the operands' words. NULL
 * after an error. */
typedef LLVMValueRef CodeEmitter(Codegen *cg, const Op *op, LLVMValueRef *codes);

/* Lowers an op by what `emit` gives for each slot of a thread. */
bool emit_slots(Codegen *cg, const Op *op, CodeEmitter *emit);
/* Lowers an op by what `emit` gives for each word: all operands and the result
 * have one type, and past the last slot anything will do. */
bool emit_words(Codegen *cg, const Op *op, CodeEmitter *emit);

/* Allows an f32 or f64 operation to be one with an operation that also allows it (LLVM's
 * `contract`), where the program does. Returns `v`. */
LLVMValueRef allow_contraction(Codegen *cg, LLVMValueRef v);

/* The value of an integer's code, sign-extended to the code's LLVM type if `t`
 * is signed; and the code of a value, of which the low bits count. */
LLVMValueRef emit_integer_value(Codegen *cg, DType t, LLVMValueRef code);
LLVMValueRef emit_integer_code(Codegen *cg, DType t, LLVMValueRef value);

/* ---- scalars (emit_scalar.c) ---------------------------------------- */

static inline LLVMValueRef const_i32_of(Codegen *cg, uint32_t v)
{
    return LLVMConstInt(cg->i32, v, 0);
}

static inline LLVMValueRef const_i64_of(Codegen *cg, int64_t v)
{
    return LLVMConstInt(cg->i64, (unsigned long long)v, 1);
}

/* The value of `e`, an i64, computed at the builder's place. */
LLVMValueRef emit_expr(Codegen *cg, const Expr *e);
/* The value of `e`, a division or its rest, from those of its operands, in the cheapest form that facts
 * allow: `f` are those of `a`. */
LLVMValueRef emit_division(Codegen *cg, const Expr *e, LLVMValueRef a, ScalarFacts f, LLVMValueRef b);

/* ---- memory tensors (emit_control.c) -------------------------------- */

/* Lowers the result of `op`, a tensor whose first element has number `first` (an
 * i64) in the memory at `base`. */
bool lower_memory(Codegen *cg, const Op *op, LLVMValueRef base, LLVMValueRef first);

/* ---- intrinsics (intrinsics.c) -------------------------------------- */

/* Calls @tilus.<...>, declaring it. `at` locates the error for a target that
 * lacks it; NULL then. Several results come back as one struct of i32. */
LLVMValueRef call_intrinsic(Codegen *cg, IntrinsicId id, Loc at, LLVMValueRef *args,
                            unsigned count);

/* ---- shared memory (shared.c) --------------------------------------- */

typedef struct Plan Plan;       /* select/plan.h */

/* Begins a program: proves the offsets that its tensors have; false after an
 * error. */
bool shared_open(Codegen *cg, Program *p);

/* The address of the tensor of `op`, an allocate_shared or allocate_mbarrier; and of the
 * scratch of another op. NULL after an error: the target has too few bytes. */
LLVMValueRef shared_reserve(Codegen *cg, const Op *op);
LLVMValueRef shared_scratch(Codegen *cg, const Op *op, const Plan *plan);

/* Bytes [begin, end) of a block's shared memory that `op` may access. */
typedef struct SharedRange {
    const Op *op;
    const Value *tensor;        /* that lies there; NULL: scratch */
    int64_t begin, end;
} SharedRange;

/* The ranges of all ops of a program that codegen_lower has taken, `*count` of them, on the
 * module's scratch arena. An op has one for each shared tensor and one for its scratch. */
SharedRange *shared_ranges(const Program *p, uint32_t *count);

/* ---- barriers (emit_group.c) ------------------------------------------ */

/* The threads that run `op` wait for each other. False after an error: the block
 * has too few barriers. */
bool emit_barrier(Codegen *cg, const Op *op);
/* Emits the fence before an arrival or a barrier that keeps earlier reads before it. */
bool emit_reads_fence(Codegen *cg, const Op *op, const Plan *plan);
/* One of all threads of all blocks of the cluster. */
bool emit_cluster_barrier(Codegen *cg, Loc at);

/* ---- numbers of threads (thread.c) ------------------------------------- */

/* The number, an i32, of a thread's warp among the running threads, of which ptxas knows that it
 * is uniform: by a shuffle, once where their code begins, as LLVM moves none out of loops. NULL
 * after an error. */
LLVMValueRef uniform_warp(Codegen *cg, Loc at);

/* ---- places in the program text (lines.c) ------------------------------- */

/* Gives code that is lowered from here on its place. */
void lines_open(Codegen *cg, LineForm form);
/* Completes the metadata, which must precede all reads. */
void lines_close(Codegen *cg);
/* Set the program, or the op, whose lines follow. Nothing happens without lines. */
void lines_program(Codegen *cg, const Program *p);
void lines_op(Codegen *cg, const Op *op);
/* The place that a NUMBERED location stands for, without its length. */
Loc lines_location(LLVMMetadataRef location);
/* PTX of NUMBERED locations with their places instead, malloc'ed (lines_ptx.c); NULL when memory
 * runs out. */
char *lines_write(const Diag *diag, const char *ptx);
/* Returns true when places are inlined at calls, which PTX knows since INLINED_AT_PTX. */
bool lines_have_calls(const Codegen *cg);
enum { INLINED_AT_PTX = 72 };

/* ---- emitters ------------------------------------------------------- */

/* Each lowers one op at the builder's place, by its plan where it has one; false after
 * errors. */
#define PLAIN(id) bool emit_##id(Codegen *cg, const Op *op);
#define PLANNED(id, family) bool emit_##id(Codegen *cg, const Op *op, const Plan *plan);
#include "select/planners.def"

/* Lowers the ops of a region in order. */
bool emit_region(Codegen *cg, const Region *r);
/* Lowers region `i` of `op`, and its wait for products at the end where the plan has one; and
 * the wait before the op. */
bool emit_drained_region(Codegen *cg, const Op *op, unsigned i, const DrainPlan *plan);
bool emit_drain_before(Codegen *cg, const Op *op, const DrainPlan *plan);

/* ---- lowering (codegen.c) ----------------------------------------------- */

/* Lowers `only`, or every program if it is NULL, for the target called `cpu`. If cg->opt_level
 * asks for optimizations, a program past LIMIT_OPTIMIZED, and the module of one with long chains,
 * is marked, with a warning. The LLVM module has no triple yet, and its @tilus.* functions no
 * bodies. False after errors. */
bool codegen_lower(Codegen *cg, const char *cpu, const Program *only);

/* Keeps LLVM's first error, which llvm_check reports: it ended `doing`. */
void llvm_watch(Codegen *cg);
bool llvm_check(Codegen *cg, const char *doing);
/* Reports that LLVM refused, and disposes of `error`; true if it is NULL. */
bool llvm_succeeded(Codegen *cg, const char *doing, LLVMErrorRef error);
/* Returns the number of instructions in `f`, without those that take a result of several apart:
 * a wgmma has up to 128. */
int64_t llvm_count_instructions(LLVMValueRef f);
/* Returns the length of the longest chain of integer operations of `f`, each of the one before, if
 * reassociating them would take long; else 0 (llvm_chain.c). */
int64_t llvm_long_chain(Codegen *cg, LLVMValueRef f);
/* Marks `f` as too large for passes whose time grows with the square of its size. */
void llvm_mark_large(Codegen *cg, LLVMValueRef f);
/* Returns the optimization level of a target machine for the lowered programs. */
unsigned llvm_machine_level(const Codegen *cg);
/* Splits long basic blocks, of which code generation makes instructions in quadratic time
 * (llvm_blocks.c). */
void llvm_split_blocks(Codegen *cg);
/* Verifies the LLVM module and runs default<O`cg->opt_level`> over it, of which functions
 * marked as large get only passes that take linear time. */
bool llvm_optimize(Codegen *cg, LLVMTargetMachineRef machine,
                   LLVMPassBuilderOptionsRef options);

/* ---- the back end (nvptx.c) ----------------------------------------- */

/* Initializes LLVM's NVPTX target, once in a process. */
void nvptx_initialize(void);
/* Makes cg->machine, for PTX version `ptx` (80 for 8.0), and gives the LLVM
 * module its triple and data layout. */
bool nvptx_open(Codegen *cg, unsigned ptx);
/* Gives each used @tilus.* declaration its body. */
void nvptx_fill_intrinsics(Codegen *cg);
/* Verifies and optimizes the LLVM module. */
bool nvptx_optimize(Codegen *cg);
/* PTX text, malloc'ed; NULL after errors. */
char *nvptx_print(Codegen *cg);

#endif
