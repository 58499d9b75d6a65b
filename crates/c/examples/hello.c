/* A table in key order: put, get, and a scan of a prefix. cc hello.c $(pkg-config --cflags --libs forebay) */
#include <forebay.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static forebay_error *error;

static void must(bool ok) {
    if (ok) return;
    fprintf(stderr, "hello: %s\n", forebay_error_message(error));
    exit(1);
}

static void put(forebay_table *table, const char *key, const char *value) {
    must(forebay_table_put(table, key, strlen(key), value, strlen(value), &error));
}

int main(int count, char **arguments) {
    forebay_options *options = forebay_options_new();
    must(forebay_options_set(options, "memory", "64MiB", &error));
    forebay_db *db = forebay_db_open(count > 1 ? arguments[1] : "hello.db", options, &error);
    must(db != NULL);
    forebay_options_free(options);

    forebay_table_options *ordered = forebay_table_options_new();
    must(forebay_table_options_set(ordered, "layout", "wb-tree:ordered", &error));
    forebay_table *users = forebay_table_open(db, "users", ordered, &error);
    must(users != NULL);
    forebay_table_options_free(ordered);

    put(users, "ada", "1815");
    put(users, "alan", "1912");
    put(users, "grace", "1906");

    char *year = forebay_table_get(users, NULL, "ada", 3, NULL, &error);
    must(error == NULL);
    printf("ada was born in %s\n", year ? year : "a year that is not known");
    forebay_free(year);

    forebay_scan *scan = forebay_scan_new_prefix(users, NULL, "a", 1, FOREBAY_FORWARD, &error);
    must(scan != NULL);
    forebay_entry entries[64];
    size_t found;
    while ((found = forebay_scan_next(scan, entries, 64, &error)) > 0)
        for (size_t i = 0; i < found; i++)
            printf("%.*s\t%.*s\n", (int)entries[i].key.bytes, entries[i].key.data, (int)entries[i].value.bytes,
                   entries[i].value.data);
    must(error == NULL);

    forebay_scan_free(scan);
    forebay_table_free(users);
    must(forebay_db_close(db, &error));
    return 0;
}
