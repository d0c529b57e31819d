/* Remarks: what passes chose and what they missed, with the reason, for people
 * who tune programs. Unlike a diagnostic, a remark is given only on request.
 *
 *     file:12:8: remark: load_shared moves 16 bytes a lane ... [-Rpass=select-instructions]
 *
 * A remark is data: a row of remarks.def and a value for each of its arguments, from which the
 * sentence is made. */
#ifndef TILUS_SUPPORT_REMARK_H
#define TILUS_SUPPORT_REMARK_H

#include "support/diag.h"
#include "tilus/tilus.h"

typedef enum RemarkId {
#define REMARK_ROW(pass, name, kind, text, meaning, cure) REMARK_##name,
#include "support/remarks.def"
    REMARK_COUNT
} RemarkId;

typedef struct RemarkInfo {
    const char *pass, *name;
    tilus_remark_kind kind;
    const char *text;           /* with {int Bytes} for values */
    const char *meaning;
    const char *cure;           /* of a missed one, else NULL */
} RemarkInfo;

extern const RemarkInfo remark_info[REMARK_COUNT];

/* The remark of this name, or REMARK_COUNT. */
RemarkId remark_find(const char *name);

/* A part of a remark's text. */
typedef enum PieceKind { PIECE_WORDS, PIECE_VALUE, PIECE_PLURAL } PieceKind;

typedef struct RemarkPiece {
    PieceKind kind;
    tilus_remark_type type;     /* of a PIECE_VALUE */
    bool hidden;                /* the value is not in the sentence */
    const char *start;          /* of the words, or of the argument's name ... */
    size_t len;                 /* ... and its length */
} RemarkPiece;

/* Takes the next piece of a row's text, from `*at`; false at its end. */
bool remark_next_piece(const char **at, RemarkPiece *piece);

/* The user's request for remarks; plain data, owned by its maker. */
typedef struct Remarks {
    const char *wanted[2];      /* by tilus_remark_kind: an extended regular expression that is
                                   found in the pass's name; NULL: none */
    Writer out;                 /* takes those as lines */
    Writer file;                /* takes all, where `write` is not NULL ... */
    tilus_remark_format format; /* ... in this form */
    void (*take)(void *taker, const tilus_remark *remark);  /* gets all; NULL: nobody does */
    void *taker;
    const char *program;        /* that passes run on */
} Remarks;

/* Returns true when `wanted` are regular expressions; false after an error in `diag`. */
bool remarks_check(const Remarks *remarks, Diag *diag);

/* Returns true when the user asked for any remark; `remarks` may be NULL. */
bool remarks_wanted(const Remarks *remarks);

enum { REMARK_ARGUMENTS_MAX = 12 };

/* Prints and records one remark about the text of `diag` at `loc`, if the user asked for
 * remarks of its pass. `remarks` may be NULL. The `count` values are those of the row's
 * arguments, in its order; their names are filled in. */
void remark_emit(const Remarks *remarks, RemarkId id, Diag *diag, Loc loc,
                 const tilus_remark_argument *values, size_t count);

/* Does so with a remark of a caller's pass, which has the name OwnRemark and its text alone. */
void remark_emit_own(const Remarks *remarks, const char *pass, tilus_remark_kind kind, Diag *diag,
                     Loc loc, const char *text);

/* Gives a remark its values: REMARK_AT(m->remarks, diag, loc, LoopUnrolled, R(copies)). */
#define REMARK_AT(remarks, diag, loc, name, ...)                              \
    remark_emit(remarks, REMARK_##name, diag, loc,                            \
                (const tilus_remark_argument[]){__VA_ARGS__},                 \
                sizeof((const tilus_remark_argument[]){__VA_ARGS__}) /        \
                    sizeof(tilus_remark_argument))

static inline tilus_remark_argument remark_integer(int64_t value)
{
    return (tilus_remark_argument){.type = TILUS_REMARK_INTEGER, .integer = value};
}

static inline tilus_remark_argument remark_real(double value)
{
    return (tilus_remark_argument){.type = TILUS_REMARK_REAL, .real = value};
}

static inline tilus_remark_argument remark_text(const char *value)
{
    return (tilus_remark_argument){.type = TILUS_REMARK_TEXT, .text = value};
}

/* The value of an argument. */
#define R(value)                                                              \
    _Generic((value), char *: remark_text, const char *: remark_text,         \
             double: remark_real, default: remark_integer)(value)

#endif
