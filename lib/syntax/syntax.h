/* Program text: parsing (with instantiation) and printing. */
#ifndef TILUS_SYNTAX_SYNTAX_H
#define TILUS_SYNTAX_SYNTAX_H

#include "ir/ir.h"

/* A `-D NAME=VALUE`; VALUE is an integer or the name of a type. */
typedef struct Define {
    const char *name;
    const char *value;
} Define;

/* Parses the diag's source into `m`, resolving param, layout and when.
 * Returns false after errors, which the diag holds; `m` then holds whatever
 * could be read and must only be freed. */
bool parse_module(Module *m, const Define *defines, size_t define_count);

/* Parses the diag's source, a layout alone; NULL after errors. replicate(n)
 * alone has rank 1. */
const Layout *parse_layout_text(Module *m);

/* Parses the diag's source, and then a layout that may use its parameters and layouts. The
 * diag's last frame is the layout's, whose text lives as long as the diag. */
const Layout *parse_layout_of_text(Module *m, const Define *defines, size_t define_count,
                                   const char *layout);

/* Parses a layout, and a type of this kind, which name neither parameters nor values; NULL
 * after errors at <layout>:1:1 and <type>:1:1. The module has its text already. */
const Layout *parse_layout_piece(Module *m, const char *text);
const Type *parse_type_text(Module *m, TypeKind kind, const char *text);

/* Each appends to `out`, which must not lie on the module's scratch arena.
 * Canonical text of a module, or of one program; parsing it gives the same
 * module, and printing that gives the same text. */
void print_module(Text *out, Module *m);
void print_program(Text *out, Program *p);

/* Forgets the names that a print had chosen when memory ran out. */
void print_forget_names(Module *m);

#endif
