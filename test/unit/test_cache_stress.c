/* Many processes and threads on one cache, while processes are killed at any moment: no
 * result is wrong, and what is left is whole. The same on a full disk and in a directory
 * that is read-only.
 *
 *   test_cache_stress [--seconds=N]     N seconds for each, by default 2
 *   test_cache_stress --fill=DIRECTORY only puts three entries there, for other tests */
#define _GNU_SOURCE
#include "cache_fixture.h"
#include "tilus/artefact.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum { PROCESSES = 8, THREADS = 4, KEYS = 50, DATA_MAX = 40000, NOBODY = 65534 };
enum { WRONG = 3 };     /* exit code of a process that got a wrong result */

static int seconds = 2;

/* A thread's work with key i; false when the thread got a wrong result. */
typedef bool Use(Cache *cache, unsigned i, unsigned char data[DATA_MAX]);

/* ---- results ---------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Writes the bytes of key i; returns their number. */
static size_t make_data(unsigned i, unsigned char data[DATA_MAX])
{
    uint64_t state = i + 1;
    for (int warm = 0; warm < 8; warm++)
        next_random(&state);
    size_t size = next_random(&state) % DATA_MAX;
    for (size_t at = 0; at < size; at++)
        data[at] = (unsigned char)next_random(&state);
    return size;
}

/* Gets key i, or puts it. False when something else was there. */
static bool use_key(Cache *cache, unsigned i, unsigned char data[DATA_MAX])
{
    CacheKey key = numbered_key(i);
    void *bytes;
    size_t size, expected = make_data(i, data);
    bool right = true;
    if (cache_get(cache, &key, &bytes, &size)) {
        right = size == expected && memcmp(bytes, data, size) == 0;
        free(bytes);
    } else {
        cache_put(cache, &key, data, expected);
    }
    cache_key_free(&key);
    return right;
}

/* ---- programs --------------------------------------------------------------------- */

/* What each compiles to, without a cache; the child processes have it from their parent. */
static struct {
    void *bytes;
    size_t size;
} programs[KEYS];

static tilus_status compile_program(Cache *cache, unsigned i, void **bytes, size_t *size)
{
    static const char text[] = "param N = 1\n"
                               "program @fill<1>(%a: ptr<i32> {align = 16}) warps(1) {\n"
                               "  %g = view_global %a : i32[32]\n"
                               "  %x = allocate_register N : i32[32] @ spatial(32)\n"
                               "  store_global %x, %g[0]\n"
                               "}\n";
    char value[16];
    snprintf(value, sizeof value, "%u", i);
    const tilus_define define = {"N", value};
    const tilus_jit_options options = {.struct_size = sizeof options,
                                       .defines = &define, .define_count = 1,
                                       .target = "sm_80", .opt_level = 3, .cache = cache};
    tilus_diag *diag = tilus_diag_new();
    if (!diag)
        return TILUS_ERROR_MEMORY;
    tilus_status status = tilus_jit(diag, text, strlen(text), &options, bytes, size);
    tilus_diag_free(diag);
    return status;
}

/* Returns true when a launcher takes the bytes. */
static bool loads(const void *bytes, size_t size)
{
    tilus_artefact *artefact;
    bool right = tilus_artefact_read(bytes, size, &artefact, NULL, 0) == TILUS_OK &&
                 strcmp(artefact->info->name, "fill") == 0;
    free(artefact);
    return right;
}

static bool use_program(Cache *cache, unsigned i, unsigned char data[DATA_MAX])
{
    void *bytes;
    size_t size;
    (void)data;
    bool right = compile_program(cache, i, &bytes, &size) == TILUS_OK &&
                 size == programs[i].size && memcmp(bytes, programs[i].bytes, size) == 0 &&
                 loads(bytes, size);
    free(bytes);
    return right;
}

/* ---- processes -------------------------------------------------------------------- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* State that the threads of a process share. */
typedef struct Worker {
    Cache *cache;
    Use *use;
    double end;
    _Atomic uint64_t seeds;
} Worker;

static void *run_thread(void *argument)
{
    Worker *w = argument;
    uint64_t state = atomic_fetch_add(&w->seeds, 0x9e3779b97f4a7c15);
    unsigned char *data = malloc(DATA_MAX);
    while (data && now() < w->end) {
        if (!w->use(w->cache, (unsigned)(next_random(&state) % KEYS), data))
            _exit(WRONG);
        if (next_random(&state) % 64 == 0)
            cache_sweep(w->cache, w->cache->limit, NULL);
    }
    free(data);
    return NULL;
}

static _Noreturn void run_process(Use *use, uint64_t limit, double end, unsigned seed)
{
    pthread_t threads[THREADS];
    Worker w = {.cache = cache_open(directory, false, limit, NULL, NULL), .use = use,
                .end = end, .seeds = ((uint64_t)seed << 32) + 1};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; i < THREADS; i++)
        if (!w.cache || pthread_create(&threads[i], NULL, run_thread, &w) != 0)
            _exit(EXIT_FAILURE);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    _exit(EXIT_SUCCESS);
}

static pid_t start_process(Use *use, uint64_t limit, double end, unsigned seed)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        run_process(use, limit, end, seed);
    assert_true(child > 0);
    return child;
}

/* Waits for a process that should end soon by itself; then its status. */
static int wait_for(pid_t child)
{
    int status;
    for (double end = now() + 240; waitpid(child, &status, WNOHANG) == 0;) {
        if (now() > end)
            fail_msg("a process hangs");
        usleep(1000);
    }
    return status;
}

/* Eight processes for a time; one after the other is killed and another takes its place. */
static void run_processes(Use *use, uint64_t limit)
{
    pid_t children[PROCESSES];
    unsigned seed = 0, killed = 0;
    uint64_t state = 7;
    double end = now() + seconds;
    for (int i = 0; i < PROCESSES; i++)
        children[i] = start_process(use, limit, end, seed++);
    while (now() < end) {
        usleep((useconds_t)(next_random(&state) % 30000));
        int victim = (int)(next_random(&state) % PROCESSES), status;
        kill(children[victim], SIGKILL);
        assert_int_equal(waitpid(children[victim], &status, 0), children[victim]);
        if (WIFEXITED(status))
            assert_int_equal(WEXITSTATUS(status), EXIT_SUCCESS);
        killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        children[victim] = start_process(use, limit, end, seed++);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = wait_for(children[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), EXIT_SUCCESS);
    }
    assert_true(killed > 0);
    fprintf(stderr, "%u processes, %u of them killed\n", seed, killed);
}

/* ---- what is left ----------------------------------------------------------------- */

static void tilus_cache_tool(const char *command)
{
    char line[2 * TEST_PATH];
    snprintf(line, sizeof line, "%s %s --dir=%s", TILUS_CACHE_TOOL, command, directory);
    assert_int_equal(system(line), 0);
}

/* Every entry is whole, and what was not finished can go: nobody holds a lock. */
static void check_what_is_left(void)
{
    CacheFiles files;
    unsigned char *data = malloc(DATA_MAX);
    tilus_cache_tool("verify");
    Cache *cache = open_here();
    for (unsigned i = 0; i < KEYS; i++)
        assert_true(use_key(cache, i, data));
    assert_true(cache_sweep(cache, UINT64_MAX, NULL));
    assert_true(cache_list(cache, &files));
    assert_int_equal(files.count, files.entries);
    assert_true(files.entries > 0);
    cache_files_free(&files);
    cache_close(cache);
    free(data);
}

static void processes_may_be_killed(void **state)
{
    (void)state;
    run_processes(use_key, CACHE_LIMIT);
    check_what_is_left();
}

/* Half of the entries fit, so that there is always one to remove. */
static void processes_may_be_killed_and_evict(void **state)
{
    (void)state;
    run_processes(use_key, (uint64_t)KEYS * DATA_MAX / 4);
    tilus_cache_tool("prune --size=500K");
    check_what_is_left();
}

static void processes_may_compile(void **state)
{
    (void)state;
    for (unsigned i = 0; i < KEYS; i++)
        assert_int_equal(compile_program(NULL, i, &programs[i].bytes, &programs[i].size),
                         TILUS_OK);
    run_processes(use_program, CACHE_LIMIT);
    check_what_is_left();
    for (unsigned i = 0; i < KEYS; i++)
        free(programs[i].bytes);
}

/* ---- in a process of its own ------------------------------------------------------ */

/* Runs `body` where no test that follows sees what it did to its process. */
static void in_child(void (*body)(void))
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        body();
        exit(EXIT_SUCCESS);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EXIT_SUCCESS);
}

static bool write_text(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
    if (file >= 0)
        close(file);
    return ok;
}

/* A disk of half a megabyte at the directory, for this process and its children only. */
static bool mount_small_disk(void)
{
    char map[64];
    snprintf(map, sizeof map, "%u %u 1", (unsigned)geteuid(), (unsigned)geteuid());
    if (unshare(CLONE_NEWNS) != 0 &&
        (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 || !write_text("/proc/self/uid_map", map)))
        return false;
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", directory, "tmpfs", 0, "size=512k,mode=700") == 0;
}

/* The same where nobody may mount: no file becomes longer than some. */
static const char *limit_files(void)
{
    const struct rlimit small = {DATA_MAX / 2, DATA_MAX / 2};
    fprintf(stderr, "cannot mount a small disk (%s): a limit of files' sizes instead\n",
            strerror(errno));
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    return "File too large";
}

/* All of it fails a write, which warns once. */
static void assert_full(const char *why)
{
    unsigned char *data = malloc(DATA_MAX);
    Cache *cache = open_here();
    for (unsigned i = 0; i < KEYS; i++)
        assert_true(use_key(cache, i, data));
    assert_int_equal(warnings.count, 1);
    assert_contains(warnings.last, why);
    cache_close(cache);
    free(data);
}

static void use_full_disk(void)
{
    const char *why = mount_small_disk() ? "No space left on device" : limit_files();
    run_processes(use_key, CACHE_LIMIT);
    assert_full(why);
    check_what_is_left();
}

static void the_disk_may_be_full(void **state)
{
    (void)state;
    in_child(use_full_disk);
}

static void use_read_only(void)
{
    /* Root writes anywhere. */
    assert_true(geteuid() != 0 || setuid(NOBODY) == 0);
    run_processes(use_key, CACHE_LIMIT);
    assert_full("Permission denied");
}

static void the_directory_may_be_read_only(void **state)
{
    (void)state;
    unsigned char *data = malloc(DATA_MAX);
    Cache *cache = open_here();
    for (unsigned i = 0; i < KEYS / 2; i++)
        use_key(cache, i, data);
    cache_close(cache);
    free(data);
    chmod(directory, 0500);
    if (geteuid() == 0)
        directory_give(directory, NOBODY);
    in_child(use_read_only);
    assert_int_equal(chown(directory, geteuid(), getegid()), 0);
    chmod(directory, 0700);
    tilus_cache_tool("verify");
}

/* ---- the program ------------------------------------------------------------------ */

static int fill(const char *path)
{
    int status = EXIT_SUCCESS;
    Cache *cache = cache_open(path, true, CACHE_LIMIT, warnings_add, &warnings);
    for (unsigned i = 0; cache && i < 3; i++)
        if (!put_number(cache, i, "some result"))
            status = EXIT_FAILURE;
    cache_close(cache);
    return cache ? status : EXIT_FAILURE;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(processes_may_be_killed),
        TEST(processes_may_be_killed_and_evict),
        TEST(processes_may_compile),
        TEST(the_disk_may_be_full),
        TEST(the_directory_may_be_read_only),
    };
    if (argc > 1 && !strncmp(argv[1], "--fill=", 7))
        return fill(argv[1] + 7);
    if (argc > 1 && sscanf(argv[1], "--seconds=%d", &seconds) != 1)
        return EXIT_FAILURE;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
