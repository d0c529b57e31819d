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

static mode_t default_mode(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

/* Opens a temporary file beside `target`, which the output owns from here on. Returns 0, or the
 * errno of the failure. */
static int open_temporary(FileOutput *out, char *target, mode_t mode)
{
    out->target = target;
    if (!target || asprintf(&out->temporary, "%s.XXXXXX", target) < 0) {
        out->temporary = NULL;
        return ENOMEM;
    }
    out->file = mkostemp(out->temporary, O_CLOEXEC);
    return out->file < 0 || fchmod(out->file, mode) != 0 ? errno : 0;
}

/* Opens what `path` leads to: a symbolic link stays one, devices and pipes have no name that
 * could be replaced. */
static int open_output(const char *path, FileOutput *out)
{
    struct stat info;
    *out = (FileOutput){.file = -1};
    if (stat(path, &info) != 0)
        return errno == ENOENT ? open_temporary(out, strdup(path), default_mode()) : errno;
    if (S_ISREG(info.st_mode)) {
        char *real = realpath(path, NULL);
        return real ? open_temporary(out, real, info.st_mode & 07777) : errno;
    }
    out->file = open(path, O_WRONLY | O_CLOEXEC);
    return out->file < 0 ? errno : 0;
}

void file_output_cancel(FileOutput *out)
{
    if (out->file >= 0)
        close(out->file);
    if (out->file >= 0 && out->temporary)
        unlink(out->temporary);
    free(out->temporary);
    free(out->target);
    *out = (FileOutput){.file = -1};
}

/* Ends the output, whose writing failed with `error`, or not. Returns 0, or the errno of the
 * first failure. */
static int finish_output(FileOutput *out, int error)
{
    int file = out->file;
    out->file = -1;
    if (close(file) != 0 && !error)
        error = errno;
    if (!error && out->temporary && rename(out->temporary, out->target) != 0)
        error = errno;
    if (error && out->temporary)
        unlink(out->temporary);
    file_output_cancel(out);
    return error;
}

bool file_output_open(const char *tool, const char *path, FileOutput *out)
{
    int error = open_output(path, out);
    if (error)
        file_output_cancel(out);
    return !error || fail(tool, "write", path, strerror(error));
}

bool file_output_close(const char *tool, const char *path, FileOutput *out)
{
    int error = finish_output(out, 0);
    return !error || fail(tool, "write", path, strerror(error));
}

static int write_path(const char *path, const void *data, size_t size)
{
    FileOutput out;
    int error = open_output(path, &out);
    if (error)
        file_output_cancel(&out);
    return error ? error : finish_output(&out, write_all(out.file, data, size));
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
