/* Numbers as text, whatever the process's locale is: programs, keys, artefacts and reports have a
 * point before the fraction, where strtod and printf follow setlocale() of the program that loads
 * the library. Any thread may call these; nobody's locale changes. */
#ifndef TILUS_SUPPORT_NUMERAL_H
#define TILUS_SUPPORT_NUMERAL_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* strtod, vsnprintf, snprintf and fprintf in the locale "C". */
double numeral_read(const char *text, char **end);
int numeral_vformat(char *text, size_t size, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
int numeral_format(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int numeral_print(FILE *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
