/* Signals of compiled code: of accesses to guard pages, of divisions by zero. The
 * handlers stand while some host thread runs blocks; a signal of another thread, or
 * of this one outside of a block, goes to whom it went before. Threads of servers often block all
 * signals; one that is blocked would end the process. */
#define _GNU_SOURCE
#include "cpu/machine.h"

#include <signal.h>
#include <stdlib.h>

enum { STACK = 1 << 16 };

static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE};
enum { CAUGHT = sizeof caught / sizeof *caught };

static once_flag once = ONCE_FLAG_INIT;
static mtx_t mutex;
static unsigned users;
static struct sigaction before[CAUGHT];

static void initialize(void)
{
    mtx_init(&mutex, mtx_plain);
}

/* Gives the signal to the handler that stood before, and stays for those of blocks. Where there is
 * none, the process ends when the instruction is repeated. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    unsigned i = 0;
    while (i < CAUGHT - 1 && caught[i] != number)
        i++;
    const struct sigaction *a = &before[i];
    if (a->sa_flags & SA_SIGINFO)
        a->sa_sigaction(number, info, context);
    else if (a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN)
        a->sa_handler(number);
    else
        sigaction(number, a, NULL);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    Worker *w = cpu_worker;
    if (!w) {
        pass_on(number, info, context);
        return;
    }
    w->signal_number = number;
    w->signal_address = info->si_addr;
    siglongjmp(w->cluster->escape, 1);
}

static void install(void)
{
    struct sigaction action = {.sa_sigaction = on_signal,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    for (unsigned i = 0; i < CAUGHT; i++)
        sigaction(caught[i], &action, &before[i]);
}

bool signals_enter(Worker *w)
{
    call_once(&once, initialize);
    w->signal_stack = malloc(STACK);
    if (!w->signal_stack)
        return false;
    const stack_t stack = {.ss_sp = w->signal_stack, .ss_size = STACK};
    sigset_t ours;
    sigemptyset(&ours);
    for (unsigned i = 0; i < CAUGHT; i++)
        sigaddset(&ours, caught[i]);
    sigaltstack(&stack, &w->stack_before);
    mtx_lock(&mutex);
    if (users++ == 0)
        install();
    mtx_unlock(&mutex);
    cpu_worker = w;
    pthread_sigmask(SIG_UNBLOCK, &ours, &w->mask_before);
    return true;
}

void signals_leave(Worker *w)
{
    pthread_sigmask(SIG_SETMASK, &w->mask_before, NULL);
    cpu_worker = NULL;
    mtx_lock(&mutex);
    if (--users == 0)
        for (unsigned i = 0; i < CAUGHT; i++)
            sigaction(caught[i], &before[i], NULL);
    mtx_unlock(&mutex);
    sigaltstack(&w->stack_before, NULL);
    free(w->signal_stack);
    w->signal_stack = NULL;
}
