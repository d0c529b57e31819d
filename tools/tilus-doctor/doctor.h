/* tilus-doctor: what this machine has for Tilus, and whether it fits together. Each part
 * prints its rows and notes what the verdict needs. */
#ifndef TILUS_DOCTOR_H
#define TILUS_DOCTOR_H

#include <stdbool.h>

#define TOOL "tilus-doctor"

enum { DOCTOR_TARGETS = 32, DOCTOR_DEVICES = 64 };

typedef struct Doctor {
    bool compiles, runs_on_cpu;         /* a small program, for all targets */
    unsigned ptx[DOCTOR_TARGETS];       /* the PTX version that it needs on each, 80 for 8.0 */
    bool has_driver;
    bool driver_failed;                 /* there is one, but it does not work */
    int devices;
    bool usable[DOCTOR_DEVICES];        /* devices that take what is compiled for them */
} Doctor;

/* Prints a row: a name and text as of printf. */
void doctor_row(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void doctor_check_compiler(Doctor *d);
void doctor_check_driver(Doctor *d);        /* after the compiler */
void doctor_check_ptxas(void);
void doctor_check_cache(void);

#endif
