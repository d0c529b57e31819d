/* A buffer in which a check describes the first fault. */
#ifndef TILUS_SUPPORT_REPORT_H
#define TILUS_SUPPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct Report {
    char *message;
    size_t size;            /* in bytes; 0: no description */
} Report;

/* Describes a fault, cut off where it does not fit; returns false. */
bool report_fault(Report r, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
