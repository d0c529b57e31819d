/* Identities as JSON. */
#include "tilus-matmul/identity.h"

#include <stdio.h>
#include <string.h>

void identity_key(const char *tensor, char key[static IDENTITY_KEY])
{
    snprintf(key, IDENTITY_KEY, "tilus.%s", tensor);
}

static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

char *identity_write(const tilus_matmul_problem *problem, const tilus_matmul_plan *plan,
                     const char *device, const char sum[static CHECKSUM])
{
    int64_t n_tile, k_tile;
    tilus_matmul_tile(plan, &n_tile, &k_tile);
    json_t *root = json_pack(
        "{s:i, s:s, s:s, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:s, s:b, s:s, s:I, s:I, s:s, s:s}", "form",
        IDENTITY_FORM, "tilus", tilus_matmul_version(), "weights", problem->weights,
        "activations", text_or_null(problem->activations), "scales",
        text_or_null(problem->scales), "result", text_or_null(problem->result), "product",
        text_or_null(problem->product), "n",
        (json_int_t)problem->n, "k", (json_int_t)problem->k, "group",
        (json_int_t)problem->group, "zeros", zeros_names[problem->zeros], "gated",
        problem->gated, "function", function_names[problem->function], "n_tile",
        (json_int_t)n_tile, "k_tile", (json_int_t)k_tile, "device", device, "checksum", sum);
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    return text;
}

static bool read_zeros(const json_t *root, tilus_zeros *zeros)
{
    const char *name = json_string_value(json_object_get(root, "zeros"));
    for (int i = 0; name && zeros_names[i]; i++)
        if (strcmp(zeros_names[i], name) == 0) {
            *zeros = (tilus_zeros)i;
            return true;
        }
    return false;
}

static const char *text_of(const json_t *root, const char *key)
{
    return json_string_value(json_object_get(root, key));
}

static int64_t number_of(const json_t *root, const char *key)
{
    return (int64_t)json_integer_value(json_object_get(root, key));
}

bool identity_read(const Source *source, const char *tensor, Identity *identity)
{
    char key[IDENTITY_KEY];
    identity_key(tensor, key);
    const char *text = safetensors_metadata(&source->safe, key);
    if (!text)
        return fail("'%s': tensor '%s' has no identity: the metadata lack '%s'", source->path,
                    tensor, key);
    json_t *root = json_loads(text, 0, NULL);
    int64_t form = number_of(root, "form");
    *identity = (Identity){
        .root = root, .device = text_of(root, "device"), .checksum = text_of(root, "checksum"),
        .problem = {.struct_size = sizeof identity->problem, .weights = text_of(root, "weights"),
                    .activations = text_of(root, "activations"),
                    .scales = text_of(root, "scales"), .result = text_of(root, "result"),
                    .product = text_of(root, "product"),
                    .n = number_of(root, "n"), .k = number_of(root, "k"),
                    .gated = json_is_true(json_object_get(root, "gated")),
                    .group = number_of(root, "group"), .n_tile = number_of(root, "n_tile")}};
    bool known = form == IDENTITY_FORM;
    if (known && identity->device && identity->checksum &&
        read_zeros(root, &identity->problem.zeros))
        return true;
    json_decref(root);
    return known || !root
         ? fail("'%s': the identity of tensor '%s' is damaged", source->path, tensor)
         : fail("'%s': the identity of tensor '%s' has form %lld, %d is read", source->path,
                tensor, (long long)form, IDENTITY_FORM);
}
