/* Plans of lookup_shared: how wide its loads are, and how codes become the address of a row.
 *
 *     address = first row + row number * bytes from row to row + the thread's copy
 *
 *     by      rows                                  a group of codes
 *     prmt    256 bytes apart, copies in between    is a byte
 *     lop3    a power of two apart, likewise        is any bits
 *     sum     anywhere                              a product for each code */
#ifndef TILUS_SELECT_TABLE_H
#define TILUS_SELECT_TABLE_H

#include "ir/lookup.h"

typedef enum RowAddress { ROW_BY_SUM, ROW_BY_LOP3, ROW_BY_PRMT } RowAddress;

typedef struct TablePlan {
    LookupTable table;
    unsigned code_bits, bits;       /* of a code, of an element */
    int64_t stride[LIMIT_RANK];     /* of the table, in bytes */
    unsigned width;                 /* elements that one load reads, a power of two */
    RowAddress address;
} TablePlan;

TablePlan table_plan(Module *m, const Op *op);

/* The bytes from row to row of the last code of a group. */
static inline int64_t table_row_bytes(const TablePlan *p)
{
    return p->stride[p->table.group - 1];
}

#endif
