/* tilus-reduce: shrinks a program for as long as a command finds it interesting.
 *
 *   main.c      the command line
 *   trial.c     candidates and the command
 *   program.c   reduction of a valid program, edit by edit
 *   edit.c      its edits
 *   replace.c   one value in the place of another
 *   text.c      reduction of any text: lines and numbers */
#ifndef TILUS_REDUCE_H
#define TILUS_REDUCE_H

#include "common/options.h"
#include "ir/ir.h"
#include "tilus/tilus.h"

#define TOOL "tilus-reduce"

/* The best text so far, and how candidates are judged. */
typedef struct Reduction {
    const char *test;           /* the shell's command, {} in it for the file */
    const char *output;         /* gets each better text; NULL: only the last one, by main */
    char *path;                 /* of the candidate that the command is given */
    char *best;                 /* NUL-terminated, from malloc */
    bool is_program;            /* `best` parses, and so must candidates */
    bool stopped;               /* interrupted, out of tests, or a failure */
    unsigned tests, max_tests;  /* runs of the command; 0: as many as it takes */
} Reduction;

/* Takes `text` (from malloc, or NULL) as the best one if it is another one, valid
 * where it must be, and interesting: status 0. Frees it otherwise. */
bool reduction_try(Reduction *r, char *text);
/* Returns true when the best text itself is interesting. */
bool reduction_holds(Reduction *r);

/* Each tries once to remove every part; returns true when one could be removed. */
bool reduce_program(Reduction *r);
bool reduce_numbers(Reduction *r);
bool reduce_text(Reduction *r);

/* NULL when `text` is refused. The module and its diag are freed by text_release. */
Module *text_parse(const char *text);
void text_release(Module *m);

/* ---- values (replace.c) ----------------------------------------------------- */

bool value_is_used(Program *p, const Value *v);
/* `to` in the place of `from`; both are scalars, or neither is. */
void value_replace(Program *p, const Value *from, Value *to);
/* A number in the place of `v`, in operands one that is made before `at` (NULL: where
 * the program begins). False for memory that something uses: it has none. */
bool value_replace_by_number(Program *p, Value *v, Op *at, int64_t number);

/* ---- edits (edit.c) --------------------------------------------------------- */

/* Changes the `site`-th place of its kind in the module. False when there are no more;
 * what comes out may be invalid, or what was there. */
typedef bool Edit(Module *m, unsigned site);

/* Takes away `count` ops, the `site`-th from the end and those before it; what still
 * needs their results gets zeros. */
bool edit_drop_ops(Module *m, unsigned site, unsigned count);
/* An op gives way to an operand of its type. */
Edit edit_forward;
/* A loop or a group of threads is what it holds, once; an `if` is one of its regions; a
 * loop or an `if` carries one value less. */
Edit edit_run_once, edit_take_branch, edit_drop_carried;
/* Expressions are 0; an argument is a number, or gone. */
Edit edit_zero_expression, edit_drop_argument;

#endif
