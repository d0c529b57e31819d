/* Descriptions of faults. */
#include "support/report.h"

#include "support/numeral.h"

#include <stdarg.h>
#include <stdio.h>

bool report_fault(Report r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (r.size > 0)
        numeral_vformat(r.message, r.size, format, args);
    va_end(args);
    return false;
}
