/* tilus-doctor: the rows, and the verdict. */
#include "doctor.h"

#include "common/file.h"
#include "common/help.h"
#include "common/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void doctor_row(const char *name, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("%-10s  ", name);
    vprintf(format, args);
    putchar('\n');
    va_end(args);
}

/* "device 0, 2" of the devices that can be used; how many there are. */
static int name_usable(const Doctor *d, char *text, size_t size)
{
    int count = 0;
    size_t used = 0;
    for (int i = 0; i < d->devices && i < DOCTOR_DEVICES && used < size; i++)
        if (d->usable[i])
            used += (size_t)snprintf(text + used, size - used, "%s%d",
                                     count++ ? ", " : "device ", i);
    return count;
}

/* Prints what works, and advice about the rest; returns an exit code. */
static int print_verdict(const Doctor *d)
{
    char devices[512];
    int usable = name_usable(d, devices, sizeof devices);
    bool broken = !d->compiles || !d->runs_on_cpu || d->driver_failed ||
                  (d->devices && !usable);
    const char *gpu = usable             ? devices
                    : d->devices         ? "no device: see above"
                    : d->driver_failed   ? "no device: the driver fails"
                    : d->has_driver      ? "no device: the driver has none"
                                         : "no device: there is no driver";
    doctor_row("verdict", "programs %s, run on %s, and on %s",
               d->compiles ? "compile for every target" : "do not compile: see above",
               d->runs_on_cpu ? "the CPU engine" : "no CPU engine: see above", gpu);
    return broken ? EXIT_DIAGNOSTICS : EXIT_OK;
}

static int examine(void)
{
    Doctor doctor = {0};
    doctor_check_compiler(&doctor);
    doctor_check_driver(&doctor);
    doctor_check_ptxas();
    doctor_check_cache();
    return print_verdict(&doctor);
}

int main(int argc, char **argv)
{
    static const ToolInfo tool = {
        TOOL, "say what this machine has for Tilus, and whether it fits together", "[options]",
        "Compiles a small program for every target, runs it on the CPU engine, and asks the\n"
        "driver for its devices, on which nothing runs. The status is 0 when these work, also\n"
        "without a GPU, and 1 when one of them is there and does not. What is said of ptxas\n"
        "and of the cache, without which programs run, does not count.\n"};
    bool list_environment = false;
    const Option table[] = {
        {"list-environment", NULL, "print the environment variables of all tools and libraries",
         OPTION_FLAG, &list_environment, NULL},
    };
    StringList words = {0};
    int status;
    if (!options_parse(&tool, table, COUNT(table), argc, argv, &words, &status))
        return status;
    if (words.count) {
        fprintf(stderr, "%s: error: there is nothing to name, got '%s'\n", TOOL,
                words.items[0]);
        string_list_free(&words);
        return EXIT_USAGE;
    }
    if (list_environment)
        help_print_environment();
    else
        status = examine();
    return file_close(TOOL, "-", stdout) ? status : EXIT_DIAGNOSTICS;
}
