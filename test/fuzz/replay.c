/* A target without libFuzzer: runs each file that is named, and each in the
 * directories that are named, in the order of their names. So every build and every
 * compiler tests what fuzzing found.
 *
 *   fuzz_parse test/fuzz/corpus/parse some/input */
#define _DEFAULT_SOURCE
#include "target.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static unsigned inputs;

static bool run_file(const char *path)
{
    enum { LONGEST = 1 << 20 };
    static uint8_t buffer[LONGEST];
    FILE *in = fopen(path, "rb");
    if (!in) {
        perror(path);
        return false;
    }
    size_t size = fread(buffer, 1, sizeof buffer, in);
    fclose(in);
    /* No byte behind the last one: AddressSanitizer sees who reads there. */
    uint8_t *data = malloc(size ? size : 1);
    if (!data)
        return false;
    memcpy(data, buffer, size);
    fprintf(stderr, "%s\n", path);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    inputs++;
    return true;
}

static int is_no_dot_file(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static bool run_directory(const char *path)
{
    struct dirent **entries;
    int count = scandir(path, &entries, is_no_dot_file, alphasort);
    if (count < 0) {
        perror(path);
        return false;
    }
    bool ok = true;
    for (int i = 0; i < count; i++) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
        ok &= run_file(file);
        free(entries[i]);
    }
    free(entries);
    return ok;
}

int main(int argc, char **argv)
{
    bool ok = true;
    struct stat info;
    for (int i = 1; i < argc; i++)
        ok &= stat(argv[i], &info) == 0 && S_ISDIR(info.st_mode) ? run_directory(argv[i])
                                                                 : run_file(argv[i]);
    printf("%u inputs\n", inputs);
    return ok && inputs ? EXIT_SUCCESS : EXIT_FAILURE;
}
