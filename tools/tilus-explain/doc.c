/* Texts and members of the document. */
#include "tool.h"

#include "support/utf8.h"

#include <stdlib.h>
#include <string.h>

json_t *doc_text_n(const char *text, size_t size)
{
    static const char replacement[] = "\xEF\xBF\xBD";
    char *clean = malloc(3 * size + 1), *at = clean;
    if (!clean)
        return NULL;
    for (size_t i = 0; i < size;) {
        size_t n = utf8_length(text + i, size - i);
        memcpy(at, n ? text + i : replacement, n ? n : 3);
        at += n ? n : 3;
        i += n ? n : 1;
    }
    json_t *value = json_stringn(clean, (size_t)(at - clean));
    free(clean);
    return value;
}

json_t *doc_text(const char *text)
{
    return doc_text_n(text, strlen(text));
}

json_t *doc_text_or_null(const char *text)
{
    return text ? doc_text(text) : json_null();
}

json_t *doc_put(Explain *e, json_t *object, const char *key, json_t *value)
{
    e->no_memory |= json_object_set_new(object, key, value) != 0;
    return e->no_memory ? NULL : value;
}

void doc_add(Explain *e, json_t *array, json_t *value)
{
    e->no_memory |= json_array_append_new(array, value) != 0;
}

const char *doc_string(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

json_int_t doc_integer(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}
