/* `build`: the folder that a server needs; `check`: whether it, or a file, is whole. */
#define _GNU_SOURCE
#include "tilus-matmul/identity.h"

#include "common/file.h"
#include "tilus/artefact.h"
#include "tilus/tilus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MANIFEST_FORM = 1 };

static const char weights_name[] = "weights.safetensors", manifest_name[] = "manifest.json",
                  kernels_name[] = "kernels";

static const char *join(char path[static PATH], const char *folder, const char *name)
{
    snprintf(path, PATH, "%s/%s", folder, name);
    return path;
}

static bool read_kernel(const char *folder, const char *name, char **bytes, size_t *size)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s/%s.tilusk", folder, kernels_name, name);
    return file_read(TOOL, path, TILUS_ARTEFACT_MAX, bytes, size);
}

/* ---- build ------------------------------------------------------------------------- */

/* Describes the kernels as they lie in the folder; NULL after a failure. */
static json_t *list_kernels(const KernelSet *set, const char *folder)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < set->count; i++) {
        const struct KernelItem *k = &set->items[i];
        char *bytes, sum[CHECKSUM];
        size_t size;
        if (!read_kernel(folder, k->name, &bytes, &size)) {
            json_decref(list);
            return NULL;
        }
        checksum((unsigned char *)bytes, size, sum);
        free(bytes);
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:I, s:s}", "name", k->name,
                                              "program", k->program, "parameters",
                                              k->parameters, "bytes", (json_int_t)size,
                                              "checksum", sum));
    }
    return list;
}

static bool write_manifest(const KernelSet *set, const Library *l, const Settings *s,
                           const char *target)
{
    char path[PATH];
    json_t *kernels = list_kernels(set, s->output);
    if (!kernels)
        return false;
    json_t *root = json_pack("{s:i, s:s, s:s, s:s, s:I, s:s, s:o}", "form", MANIFEST_FORM, "tilus",
                             tilus_matmul_version(), "device", l->device->key, "target", target,
                             "m", (json_int_t)most_rows(s), "weights", weights_name, "kernels",
                             kernels);
    char *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
    bool ok = text ? file_write(TOOL, join(path, s->output, manifest_name), text, strlen(text))
                   : fail("out of memory");
    free(text);
    json_decref(root);
    return ok;
}

static bool make_folder(const char *path)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST ||
           fail("cannot make '%s': %s", path, strerror(errno));
}

static bool build(Library *l, const Settings *s, KernelSet *set)
{
    char path[PATH];
    const char *target = s->target ? s->target : tilus_target_for(l->device->capability);
    if (!make_folder(s->output) ||
        !pack_file(l, s, s->words.items[1], join(path, s->output, weights_name), set) ||
        !kernels_compile(set, s, target, join(path, s->output, kernels_name)) ||
        !write_manifest(set, l, s, target))
        return false;
    printf("%zu kernels for %s, up to %lld rows; all in '%s'\n", set->count, target,
           (long long)most_rows(s), s->output);
    return true;
}

int command_build(const Settings *s)
{
    Library l;
    KernelSet set = {0};
    bool ok = library_open(&l, s, false) && build(&l, s, &set);
    kernels_free(&set);
    library_close(&l);
    return ok ? EXIT_OK : EXIT_DIAGNOSTICS;
}

/* ---- check --------------------------------------------------------------------------- */

/* Compares with a plan of the identity's problem by this library. */
static bool check_plan(const Source *source, const SafeTensor *t, const Identity *identity,
                       const tilus_matmul_plan *plan)
{
    int64_t n_tile, k_tile;
    char sum[CHECKSUM];
    size_t size = tilus_matmul_packed_size(plan);
    tilus_matmul_tile(plan, &n_tile, &k_tile);
    if (t->size != size)
        return fail("'%s': tensor '%s' has %zu bytes, %s weights of %lld x %lld have %zu",
                    source->path, t->name, t->size, identity->problem.weights,
                    (long long)identity->problem.n, (long long)identity->problem.k, size);
    if (tilus_matmul_packed_check(plan, source->safe.data + t->begin, t->size) != TILUS_OK)
        return fail("'%s': tensor '%s': %s", source->path, t->name, tilus_rt_error());
    checksum(source->safe.data + t->begin, t->size, sum);
    if (strcmp(sum, identity->checksum) != 0)
        return fail("'%s': tensor '%s' has the checksum %s, not %s", source->path, t->name, sum,
                    identity->checksum);
    printf("%s: %s, %lld x %lld, groups of %lld, zero points %s%s, tiles of %lld x %lld, for "
           "%s: whole\n", t->name, identity->problem.weights, (long long)identity->problem.n,
           (long long)identity->problem.k, (long long)identity->problem.group,
           zeros_names[identity->problem.zeros], identity->problem.gated ? ", gated" : "",
           (long long)n_tile, (long long)k_tile, identity->device);
    return true;
}

static bool check_tensor(const Source *source, const SafeTensor *t)
{
    Identity identity;
    Library l;
    if (!identity_read(source, t->name, &identity))
        return false;
    const Settings s = {.device = identity.device};
    tilus_matmul_plan *plan = library_open(&l, &s, false) ? library_plan(&l, &identity.problem)
                                                          : NULL;
    bool ok = plan && check_plan(source, t, &identity, plan);
    tilus_matmul_plan_free(plan);
    library_close(&l);
    json_decref(identity.root);
    return ok;
}

static bool check_weights(const char *path)
{
    Source source;
    if (!source_open(&source, path))
        return false;
    bool ok = !source.is_npy || fail("'%s' is .npy, which has no packed weights", path);
    for (size_t i = 0; i < source.safe.count; i++)
        ok = check_tensor(&source, &source.safe.tensors[i]) && ok;
    source_close(&source);
    return ok;
}

static bool check_artefact(const char *name, const char *bytes, size_t size, const json_t *entry,
                           const char *target)
{
    char message[MESSAGE], sum[CHECKSUM];
    const char *wanted = json_string_value(json_object_get(entry, "checksum"));
    const char *parameters = json_string_value(json_object_get(entry, "parameters"));
    tilus_artefact *artefact;
    checksum((const unsigned char *)bytes, size, sum);
    if (!wanted || strcmp(sum, wanted) != 0)
        return fail("kernel '%s' has the checksum %s, not %s", name, sum, wanted ? wanted : "");
    if (tilus_artefact_read(bytes, size, &artefact, message, sizeof message) != TILUS_OK)
        return fail("kernel '%s': %s", name, message);
    bool ok = true;
    if (!target || strcmp(artefact->target, target) != 0)
        ok = fail("kernel '%s' is for %s, the manifest's target is %s", name, artefact->target,
                  target ? target : "");
    else if (!parameters || strcmp(artefact->parameters, parameters) != 0)
        ok = fail("kernel '%s' has the parameters '%s', not '%s'", name, artefact->parameters,
                  parameters ? parameters : "");
    tilus_free(artefact);
    return ok;
}

static bool check_kernels(const char *folder, const json_t *manifest)
{
    const json_t *kernels = json_object_get(manifest, "kernels");
    const char *target = json_string_value(json_object_get(manifest, "target"));
    bool ok = json_is_array(kernels) || fail("'%s': the manifest lists no kernels", folder);
    ok = (target || fail("'%s': the manifest names no target", folder)) && ok;
    for (size_t i = 0; i < json_array_size(kernels); i++) {
        const json_t *entry = json_array_get(kernels, i);
        const char *name = json_string_value(json_object_get(entry, "name"));
        char *bytes = NULL;
        size_t size;
        ok = (name && !strchr(name, '/') ? read_kernel(folder, name, &bytes, &size) &&
                                           check_artefact(name, bytes, size, entry, target)
                                         : fail("'%s': kernel %zu has no name", folder, i)) && ok;
        free(bytes);
    }
    if (ok)
        printf("%zu kernels for %s: whole\n", json_array_size(kernels), target);
    return ok;
}

static bool check_folder(const char *folder)
{
    char path[PATH], *text;
    size_t size;
    json_error_t error;
    if (!file_read(TOOL, join(path, folder, manifest_name), SAFETENSORS_HEADER, &text, &size))
        return false;
    json_t *manifest = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (!manifest)
        return fail("%s:%d:%d: %s", path, error.line, error.column, error.text);
    bool ok = check_kernels(folder, manifest);
    json_decref(manifest);
    return check_weights(join(path, folder, weights_name)) && ok;
}

int command_check(const Settings *s)
{
    struct stat info;
    const char *path = s->words.items[1];
    bool is_folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    return (is_folder ? check_folder(path) : check_weights(path)) ? EXIT_OK : EXIT_DIAGNOSTICS;
}
