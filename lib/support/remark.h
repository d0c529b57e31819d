/* Remarks: what passes chose and what they missed, with the reason, for people
 * who tune programs. Unlike a diagnostic, a remark is printed only on request.
 *
 *     file:12:8: remark: load_shared moves 16 bytes a lane ... [-Rpass=select-instructions]
 */
#ifndef TILUS_SUPPORT_REMARK_H
#define TILUS_SUPPORT_REMARK_H

#include "support/diag.h"

typedef enum RemarkKind { REMARK_PASSED, REMARK_MISSED } RemarkKind;

/* The user's request for remarks; plain data, owned by its maker. */
typedef struct Remarks {
    const char *wanted[2];      /* by RemarkKind: an extended regular expression that is
                                   found in the pass's name; NULL: none */
    Writer out;                   /* takes those as lines */
    Writer file;                  /* takes all as YAML documents, where `write` is not NULL */
} Remarks;

/* Returns true when `wanted` are regular expressions; false after an error in `diag`. */
bool remarks_check(const Remarks *remarks, Diag *diag);

/* Returns true when the user asked for any remark; `remarks` may be NULL. */
bool remarks_wanted(const Remarks *remarks);

/* Prints and records one remark about the text of `diag` at `loc`, if the user asked for
 * remarks of `pass`. `remarks` may be NULL. */
void remark_emit(const Remarks *remarks, RemarkKind kind, const char *pass, Diag *diag, Loc loc,
                 const char *format, ...) __attribute__((format(printf, 6, 7)));

#endif
