/* A merge rule in C: counters that are added to without being read. */
#include <forebay.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static forebay_error *error;

static void must(bool ok) {
    if (ok) return;
    fprintf(stderr, "counters: %s\n", forebay_error_message(error));
    exit(1);
}

static uint64_t number(const void *data, size_t bytes) {
    uint64_t number = 0;
    if (bytes == sizeof number) memcpy(&number, data, sizeof number);
    return number;
}

/* Called by any thread, in the midst of merges. Values come in this machine's order of bytes. */
static void add(void *context, const void *key, size_t key_bytes, const void *newer, size_t newer_bytes,
                const void *older, size_t older_bytes, forebay_output *out) {
    (void)context, (void)key, (void)key_bytes;
    uint64_t sum = number(newer, newer_bytes) + number(older, older_bytes);
    forebay_output_append(out, &sum, sizeof sum);
}

int main(int count, char **arguments) {
    forebay_db *db = forebay_db_open(count > 1 ? arguments[1] : "counters.db", NULL, &error);
    must(db != NULL);
    forebay_table_options *options = forebay_table_options_new();
    must(forebay_table_options_merge_rule(options, "add/1", add, NULL, &error));
    forebay_table *hits = forebay_table_open(db, "hits", options, &error);
    must(hits != NULL);
    forebay_table_options_free(options);

    const char *pages[] = {"/", "/map", "/", "/"};
    const uint64_t one = 1;
    for (int i = 0; i < 4; i++)
        must(forebay_table_merge(hits, pages[i], strlen(pages[i]), &one, sizeof one, &error));

    size_t bytes;
    char *value = forebay_table_get(hits, NULL, "/", 1, &bytes, &error);
    must(error == NULL);
    printf("/ has %" PRIu64 " hits\n", number(value, bytes));

    forebay_free(value);
    forebay_table_free(hits);
    must(forebay_db_close(db, &error));
    return 0;
}
