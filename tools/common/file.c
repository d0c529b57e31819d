/* Reading and writing whole files. */
#define _GNU_SOURCE
#include "common/file.h"

#include "common/options.h"
#include "support/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_standard(const char *path)
{
    return strcmp(path, "-") == 0;
}

static bool fail(const char *tool, const char *verb, const char *path, const char *reason)
{
    const char *standard = strcmp(verb, "read") == 0 ? "standard input" : "standard output";
    if (is_standard(path))
        fprintf(stderr, "%s: error: cannot %s %s: %s\n", tool, verb, standard, reason);
    else
        fprintf(stderr, "%s: error: cannot %s '%s': %s\n", tool, verb, path, reason);
    return false;
}

/* Reads to the end of `in`. Returns NULL and sets `*data`, or the reason of
 * the failure, with `*data` still to be freed. */
static const char *read_stream(FILE *in, size_t limit, char **data, size_t *size)
{
    size_t capacity = 0, used = 0, got = 1;
    while (got > 0) {
        if (used + 1 >= capacity) {
            size_t larger = capacity ? 2 * capacity : 1 << 16;
            char *moved = realloc(*data, larger);
            if (!moved)
                return "out of memory";
            *data = moved;
            capacity = larger;
        }
        got = fread(*data + used, 1, capacity - used - 1, in);
        used += got;
        if (used > limit)
            return "file too large";
    }
    if (ferror(in))
        return strerror(errno);
    (*data)[used] = 0;
    *size = used;
    return NULL;
}

bool file_read(const char *tool, const char *path, size_t limit, char **data, size_t *size)
{
    *data = NULL;
    FILE *in = is_standard(path) ? stdin : fopen(path, "rb");
    if (!in)
        return fail(tool, "read", path, strerror(errno));
    const char *reason = read_stream(in, limit, data, size);
    if (in != stdin)
        fclose(in);
    if (!reason)
        return true;
    free(*data);
    *data = NULL;
    return fail(tool, "read", path, reason);
}

/* Returns 0, or the errno of the failure. */
static int write_all(int fd, const void *data, size_t size)
{
    return file_write_all(fd, data, size) ? 0 : errno;
}

/* Devices and pipes: no name to replace. */
static int write_in_place(const char *path, const void *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int error = write_all(fd, data, size);
    return close(fd) != 0 && !error ? errno : error;
}

static int write_and_rename(const char *path, mode_t mode, const void *data, size_t size)
{
    char *temporary;
    if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
        return ENOMEM;
    int error = 0, fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) {
        error = errno;
        goto done;
    }
    error = write_all(fd, data, size);
    if (!error && fchmod(fd, mode) != 0)
        error = errno;
    if (close(fd) != 0 && !error)
        error = errno;
    if (!error && rename(temporary, path) != 0)
        error = errno;
    if (error)
        unlink(temporary);
done:
    free(temporary);
    return error;
}

static mode_t default_mode(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

static int write_path(const char *path, const void *data, size_t size)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return errno == ENOENT ? write_and_rename(path, default_mode(), data, size) : errno;
    if (!S_ISREG(info.st_mode))
        return write_in_place(path, data, size);
    char *real = realpath(path, NULL);      /* a symbolic link stays one */
    if (!real)
        return errno;
    int error = write_and_rename(real, info.st_mode & 07777, data, size);
    free(real);
    return error;
}

bool file_write(const char *tool, const char *path, const void *data, size_t size)
{
    int error = is_standard(path) ? fflush(stdout) == 0 ? write_all(STDOUT_FILENO, data, size)
                                                        : errno
                                  : write_path(path, data, size);
    return !error || fail(tool, "write", path, strerror(error));
}

FILE *file_open(const char *tool, const char *path)
{
    FILE *file = is_standard(path) ? stdout : fopen(path, "w");
    if (!file)
        fail(tool, "write", path, strerror(errno));
    return file;
}

void file_take(void *file, const char *text, size_t length)
{
    fwrite(text, 1, length, file);
}

/* Set after an error of standard output is reported: exit does not report it again. */
static bool output_failed;

bool file_close(const char *tool, const char *path, FILE *file)
{
    if (!file)
        return true;
    bool failed = fflush(file) != 0 || ferror(file);
    if (file == stdout)
        output_failed |= failed;
    else
        failed |= fclose(file) != 0;
    return !failed || fail(tool, "write", path, strerror(errno));
}

static const char *watching_tool;

static void check_at_exit(void)
{
    if (!output_failed && !file_close(watching_tool, "-", stdout))
        _exit(EXIT_DIAGNOSTICS);
}

void file_watch_output(const char *tool)
{
    watching_tool = tool;
    atexit(check_at_exit);
}

bool file_check_output(const char *tool, const char *input, const char *output)
{
    struct stat in, out;
    if (is_standard(input) || is_standard(output) || stat(input, &in) != 0 ||
        stat(output, &out) != 0 || !S_ISREG(out.st_mode) || in.st_dev != out.st_dev ||
        in.st_ino != out.st_ino)
        return true;
    return fail(tool, "write", output, "it is the input");
}
