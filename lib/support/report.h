/* Where a check describes the first thing that is wrong. */
#ifndef TILUS_SUPPORT_REPORT_H
#define TILUS_SUPPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct Report {
    char *message;
    size_t size;            /* bytes there; with 0 nobody wants to know */
} Report;

/* Describes a fault, cut off where it does not fit; returns false. */
bool report_fault(Report r, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
