/* Passes of callers: the list of them, and how one runs. */
#define _GNU_SOURCE
#include "passes/own.h"

#include "ir/structure.h"
#include "support/sized.h"

#include <stdlib.h>
#include <string.h>
#include <threads.h>

/* ---- the list ------------------------------------------------------------ */

static OwnPass *passes[TILUS_PASSES_MOST];
static size_t pass_count;
static mtx_t list_mutex;

static void make_mutex(void) { mtx_init(&list_mutex, mtx_plain); }

static void lock_list(void)
{
    static once_flag once = ONCE_FLAG_INIT;
    call_once(&once, make_mutex);
    mtx_lock(&list_mutex);
}

size_t own_pass_count(void)
{
    lock_list();
    size_t count = pass_count;
    mtx_unlock(&list_mutex);
    return count;
}

const OwnPass *own_pass_at(size_t i)
{
    lock_list();
    const OwnPass *pass = i < pass_count ? passes[i] : NULL;
    mtx_unlock(&list_mutex);
    return pass;
}

/* ---- adding ---------------------------------------------------------------- */

static bool check_name(const char *name, Report why)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";
    enum { LONGEST = 64 };
    if (!name || !*name || strlen(name) > LONGEST || name[strspn(name, letters)])
        return report_fault(why, "pass: name is %s, not up to %d small letters, digits, - and _",
                            name ? name : "NULL", LONGEST);
    return !pass_find(name, strlen(name)) ||
           report_fault(why, "pass: there is a pass called %s already", name);
}

static bool check_option(const tilus_pass *p, const tilus_pass_option *o, Report why)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    if (!o->name || !*o->name || o->name[strspn(o->name, letters)] || !o->summary ||
        strpbrk(o->summary, "\n\r"))
        return report_fault(why, "pass %s: option %s has no name of small letters, digits and _, or "
                            "no summary of one line", p->name, o->name ? o->name : "NULL");
    return (o->least <= o->value && o->value <= o->most) ||
           report_fault(why, "pass %s: option %s is %lld, which is not %lld .. %lld", p->name,
                        o->name, (long long)o->value, (long long)o->least, (long long)o->most);
}

/* The caller's i-th option, of the size that the caller knows. */
static bool copy_option(const tilus_pass *p, size_t i, tilus_pass_option *out, Report why)
{
    const char *options = (const char *)p->options;
    const tilus_pass_option *given =
        (const tilus_pass_option *)(const void *)(options + i * p->options->struct_size);
    return SIZED_COPY(tilus_pass_option, out, given, "option", why);
}

/* Returns true when one of the first `count` options, which are checked, is called `name`. */
static bool has_option(const tilus_pass *p, size_t count, const char *name)
{
    tilus_pass_option o;
    for (size_t i = 0; i < count; i++)
        if (copy_option(p, i, &o, (Report){NULL, 0}) && !strcmp(o.name, name))
            return true;
    return false;
}

static bool check_options(const tilus_pass *p, Report why)
{
    tilus_pass_option o;
    if (p->option_count > OWN_OPTIONS || (p->option_count && !p->options))
        return report_fault(why, "pass %s: %zu options, at most %d", p->name, p->option_count,
                            OWN_OPTIONS);
    for (size_t i = 0; i < p->option_count; i++) {
        if (!copy_option(p, i, &o, why) || !check_option(p, &o, why))
            return false;
        if (has_option(p, i, o.name))
            return report_fault(why, "pass %s: two options are called %s", p->name, o.name);
    }
    return true;
}

static bool check_pass(const tilus_pass *p, Report why)
{
    if (!check_name(p->name, why) || !check_options(p, why))
        return false;
    if (!p->summary || strpbrk(p->summary, "\n\r"))
        return report_fault(why, "pass %s: summary is not one line", p->name);
    return !p->run_on_program != !p->run_on_module ||
           report_fault(why, "pass %s: one of run_on_program and run_on_module is set", p->name);
}

static void free_pass(OwnPass *own)
{
    for (unsigned i = 0; i < own->option_count; i++) {
        free((char *)own->options[i].name);
        free((char *)own->options[i].summary);
    }
    free((char *)own->info.name);
    free((char *)own->info.summary);
    free(own);
}

/* Copies the options, which are checked; false when memory runs out. */
static bool copy_options(OwnPass *own, const tilus_pass *p)
{
    tilus_pass_option o;
    for (size_t i = 0; i < p->option_count; i++) {
        copy_option(p, i, &o, (Report){NULL, 0});
        PassOptionInfo *row = &own->options[own->option_count++];
        *row = (PassOptionInfo){.name = strdup(o.name), .summary = strdup(o.summary),
                                .least = o.least, .most = o.most, .value = o.value};
        if (!row->name || !row->summary)
            return false;
    }
    return true;
}

static OwnPass *copy_pass(const tilus_pass *p)
{
    OwnPass *own = calloc(1, sizeof *own);
    if (!own)
        return NULL;
    own->pass = *p;
    own->info = (PassInfo){.name = strdup(p->name), .proofs = MAY_LOSE_PROOFS,
                           .summary = strdup(p->summary), .own = own};
    if (own->info.name && own->info.summary && copy_options(own, p))
        return own;
    free_pass(own);
    return NULL;
}

/* Appends under the lock. Two threads that add one name at once add it once. */
static bool append_locked(OwnPass *own, Report why)
{
    const char *name = own->info.name;
    for (size_t i = 0; i < pass_count; i++)
        if (!strcmp(passes[i]->info.name, name))
            return report_fault(why, "pass: there is a pass called %s already", name);
    if (pass_count == TILUS_PASSES_MOST)
        return report_fault(why, "pass %s: there are %d passes already", name,
                            TILUS_PASSES_MOST);
    passes[pass_count++] = own;
    return true;
}

static bool append(OwnPass *own, Report why)
{
    lock_list();
    bool ok = append_locked(own, why);
    mtx_unlock(&list_mutex);
    return ok;
}

bool own_pass_add(const tilus_pass *pass, Report why)
{
    tilus_pass p;
    if (!pass)
        return report_fault(why, "pass: NULL");
    if (!SIZED_COPY(tilus_pass, &p, pass, "pass", why) || !check_pass(&p, why))
        return false;
    OwnPass *own = copy_pass(&p);
    if (!own)
        return report_fault(why, "pass %s: out of memory", p.name);
    if (append(own, why))
        return true;
    free_pass(own);
    return false;
}

/* ---- running ------------------------------------------------------------------- */

static bool call(const OwnPass *own, Module *m, Program *p)
{
    const tilus_pass *pass = &own->pass;
    OutOfMemory guard = m->diag->oom;   /* entries of the library that it calls set their own */
    m->own_pass = own;
    bool ok = p ? pass->run_on_program((tilus_program *)p, pass->user)
                : pass->run_on_module(m, pass->user);
    m->own_pass = NULL;
    m->diag->oom = guard;
    return ok;
}

PassResult own_pass_run(const OwnPass *own, Module *m, Program *p)
{
    uint64_t edits = m->edits;
    uint32_t errors = m->diag->errors;
    bool ok = call(own, m, p);
    if (m->diag->errors > errors)
        return PASS_FAILED;
    if (!ok) {
        diag_error(m->diag, p ? p->loc : module_loc(m), "pass %s failed", own->info.name);
        return PASS_FAILED;
    }
    return m->edits == edits ? PASS_UNCHANGED : PASS_CHANGED;
}

const PassOptionInfo *own_option_at(size_t i, const char **pass)
{
    const OwnPass *own = own_pass_at(0);
    for (size_t at = 1; own; own = own_pass_at(at++)) {
        *pass = own->info.name;
        if (i < own->option_count)
            return &own->options[i];
        i -= own->option_count;
    }
    return NULL;
}

int64_t own_option_value(const Module *m, const char *name)
{
    const OwnPass *own = m->own_pass;
    for (unsigned i = 0; own && i < own->option_count; i++)
        if (!strcmp(own->options[i].name, name))
            return m->pass_options ? m->pass_options[PASS_OPTION_COUNT + i]
                                   : own->options[i].value;
    return 0;
}

/* ---- counters ------------------------------------------------------------------- */

void own_stat_add(Module *m, const char *name, uint64_t n)
{
    OwnStat **end = &m->own_stats;
    if (!m->pass_stats || !m->own_pass)
        return;
    while (*end && ((*end)->pass != m->own_pass || strcmp((*end)->name, name) != 0))
        end = &(*end)->next;
    if (!*end) {
        *end = arena_new(&m->arena, OwnStat);
        **end = (OwnStat){m->own_pass, arena_strdup(&m->arena, name), 0, NULL};
    }
    (*end)->count += n;
}
