/* Pipelines as text. */
#include "passes/pass_text.h"

#include "passes/own.h"
#include "support/nearest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const PassOptionInfo pass_option_info[PASS_OPTION_COUNT] = {
#define PASS_OPTION(pass, name, least, most, value, summary) \
    [PASS_OPTION_##pass##_##name] = {PASS_ID_##pass, #name, summary, least, most, value},
#include "passes/options.def"
};

/* A word of the text, of `len` bytes. */
typedef struct Word {
    const char *start;
    size_t len;
} Word;

/* Takes the word up to one of the bytes `ends`. */
static Word take_word(const char **at, const char *ends)
{
    Word w = {*at, strcspn(*at, ends)};
    *at += w.len;
    return w;
}

static bool is_word(Word w, const char *name)
{
    return strlen(name) == w.len && !memcmp(name, w.start, w.len);
}

/* ---- passes ---------------------------------------------------------------------- */

static bool report_pass(Word w, Report why)
{
    Nearest nearest = {.name = w.start, .len = w.len};
    for (size_t i = 0; pass_listed(i); i++)
        nearest_try(&nearest, pass_listed(i)->name);
    return report_fault(why, "unknown pass `%.*s`%s%s%s", (int)w.len, w.start,
                        nearest.found ? ", did you mean `" : ", see --list-passes",
                        nearest.found ? nearest.found : "", nearest.found ? "`?" : "");
}

/* ---- options ----------------------------------------------------------------------- */

/* The i-th option of a pass, and in `*place` where its value is; NULL past the last. */
static const PassOptionInfo *option_at(const PassInfo *pass, unsigned i, unsigned *place)
{
    *place = PASS_OPTION_COUNT + i;
    if (pass->own)
        return i < pass->own->option_count ? &pass->own->options[i] : NULL;
    for (*place = 0; *place < PASS_OPTION_COUNT; ++*place)
        if (&pass_info[pass_option_info[*place].pass] == pass && i-- == 0)
            return &pass_option_info[*place];
    return NULL;
}

static bool report_option(const PassInfo *pass, Word w, Report why)
{
    Nearest nearest = {.name = w.start, .len = w.len};
    char all[256] = "";
    size_t used = 0;
    unsigned place;
    const PassOptionInfo *o;
    for (unsigned i = 0; (o = option_at(pass, i, &place)) && used < sizeof all; i++) {
        nearest_try(&nearest, o->name);
        used += (size_t)snprintf(all + used, sizeof all - used, "%s`%s`", used ? ", " : "",
                                 o->name);
    }
    if (!used)
        return report_fault(why, "pass %s has no options, got `%.*s`", pass->name, (int)w.len,
                            w.start);
    if (nearest.found)
        return report_fault(why, "pass %s has no option `%.*s`, did you mean `%s`?", pass->name,
                            (int)w.len, w.start, nearest.found);
    return report_fault(why, "pass %s has no option `%.*s`, it has %s", pass->name, (int)w.len,
                        w.start, all);
}

static const PassOptionInfo *find_option(const PassInfo *pass, Word w, unsigned *place)
{
    const PassOptionInfo *o;
    unsigned i = 0;
    while ((o = option_at(pass, i, place)) && !is_word(w, o->name))
        i++;
    return o;
}

/* Gives all options the values that hold where the text has none. */
static void set_values(PassStep *step)
{
    const PassOptionInfo *o;
    unsigned place;
    memset(step->values, 0, sizeof step->values);
    for (unsigned i = 0; i < PASS_OPTION_COUNT; i++)
        step->values[i] = pass_option_info[i].value;
    for (unsigned i = 0; step->pass && (o = option_at(step->pass, i, &place)); i++)
        step->values[place] = o->value;
}

static bool is_flag(const PassOptionInfo *option)
{
    return option->least == 0 && option->most == 1;
}

/* Reads the value after the name: none of a flag means 1. */
static bool take_value(const PassInfo *pass, const PassOptionInfo *option, const char **at,
                       int64_t *value, Report why)
{
    Word w = {"", 0};
    char *end = NULL;
    *value = 1;
    if (**at != '=' && is_flag(option))
        return true;
    if (**at == '=') {
        ++*at;
        w = take_word(at, " ,{}");
        errno = 0;
        *value = strtoll(w.start, &end, 10);
    }
    if (!w.len)
        return report_fault(why, "option `%s` of pass %s needs a number of %lld .. %lld, as in %s=%lld",
                            option->name, pass->name, (long long)option->least,
                            (long long)option->most, option->name, (long long)option->most);
    return (end == w.start + w.len && errno == 0 && *value >= option->least &&
            *value <= option->most) ||
           report_fault(why, "option `%s` of pass %s is %lld .. %lld, got `%.*s`", option->name,
                        pass->name, (long long)option->least, (long long)option->most,
                        (int)w.len, w.start);
}

/* Reads `{name=value ..}`, if it is there. */
static bool take_options(const char **at, PassStep *step, Report why)
{
    bool given[PASS_VALUES] = {false};
    if (**at != '{')
        return true;
    for (++*at; *(*at += strspn(*at, " ")) && **at != '}';) {
        Word w = take_word(at, "= ,{}");
        unsigned place;
        if (!w.len)
            return report_fault(why, "a blank stands between the options of pass %s, got `%c`",
                                step->pass->name, **at);
        const PassOptionInfo *option = find_option(step->pass, w, &place);
        if (!option)
            return report_option(step->pass, w, why);
        if (given[place])
            return report_fault(why, "option `%s` of pass %s is given twice", option->name,
                                step->pass->name);
        given[place] = true;
        if (!take_value(step->pass, option, at, &step->values[place], why))
            return false;
    }
    if (**at != '}')
        return report_fault(why, "the options of pass %s do not end in `}`", step->pass->name);
    ++*at;
    return !**at || strchr(", ", **at) ||
           report_fault(why, "a comma follows the options of pass %s, got `%.20s`",
                        step->pass->name, *at);
}

StepResult pass_next_step(const char **list, PassStep *step, Report why)
{
    *list += strspn(*list, ", ");
    step->text = *list;
    Word w = take_word(list, ", {");
    if (!w.len && !**list)
        return STEP_END;
    if (!w.len && !report_fault(why, "options follow the name of a pass without a blank, got `%.20s`",
                                *list))
        return STEP_WRONG;
    step->pass = pass_find(w.start, w.len);
    set_values(step);
    if (!step->pass)
        report_pass(w, why);
    return step->pass && take_options(list, step, why) ? STEP_TAKEN : STEP_WRONG;
}

/* ---- lists --------------------------------------------------------------------------- */

bool pass_check_text(const char *list, Report why)
{
    PassStep step;
    StepResult result = STEP_TAKEN;
    while (list && result == STEP_TAKEN)
        result = pass_next_step(&list, &step, why);
    return !list || result == STEP_END;
}

bool pass_is_named(const char *list, const PassInfo *pass)
{
    PassStep step;
    while (list && pass_next_step(&list, &step, (Report){NULL, 0}) == STEP_TAKEN)
        if (step.pass == pass)
            return true;
    return false;
}
