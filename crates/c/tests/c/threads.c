/* Threads that write to one table and read from it, with handles that they share. */
#include <forebay.h>
#include <pthread.h>

#include "check.h"

enum { WRITERS = 3, READERS = 2, ROUNDS = 60, ROUND = 50 };

static forebay_db *db;
static forebay_table *table;

static void key_of(char *key, size_t writer, size_t round, size_t number) {
    snprintf(key, 24, "%zu-%05zu-%05zu", writer, round, number);
}

/* A round is a batch: all of it or nothing. */
static void *write_rounds(void *place) {
    size_t writer = (size_t)place;
    forebay_error *error = NULL;
    forebay_batch *batch = forebay_batch_new();
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t number = 0; number < ROUND; number++) {
            char key[24];
            key_of(key, writer, round, number);
            forebay_batch_put(batch, table, key, strlen(key), key, strlen(key));
        }
        MUST(forebay_db_write(db, batch, round % 16 ? FOREBAY_OS : FOREBAY_DISK, NULL, &error));
    }
    forebay_batch_free(batch);
    return NULL;
}

static void *read_rounds(void *place) {
    uint64_t seed = (uint64_t)(size_t)place;
    forebay_error *error = NULL;
    forebay_entry entries[ROUND];
    for (size_t i = 0; i < ROUNDS; i++) {
        size_t writer = below(&seed, WRITERS), round = below(&seed, ROUNDS);
        char from[24], to[24];
        key_of(from, writer, round, 0);
        key_of(to, writer, round + 1, 0);
        forebay_scan *scan =
            forebay_scan_new(table, NULL, from, strlen(from), to, strlen(to), FOREBAY_FORWARD, &error);
        MUST(scan != NULL);
        size_t found, all = 0;
        while ((found = forebay_scan_next(scan, entries, ROUND, &error)) > 0) all += found;
        CHECK(error == NULL && (all == 0 || all == ROUND));
        forebay_scan_free(scan);
        char *value = forebay_table_get(table, NULL, from, strlen(from), NULL, &error);
        CHECK(error == NULL && (value == NULL || strcmp(value, from) == 0));
        forebay_free(value);
    }
    return NULL;
}

int main(int count, char **arguments) {
    CHECK(count == 3);
    forebay_error *error = NULL;
    forebay_options *options = forebay_options_new();
    MUST(forebay_options_set(options, "memory", "1M", &error));
    db = forebay_db_open(arguments[1], options, &error);
    MUST(db != NULL);
    forebay_options_free(options);
    forebay_table_options *ordered = forebay_table_options_new();
    MUST(forebay_table_options_set(ordered, "layout", "wb-tree:ordered", &error));
    table = forebay_table_open(db, "shared", ordered, &error);
    MUST(table != NULL);
    forebay_table_options_free(ordered);

    pthread_t threads[WRITERS + READERS];
    for (size_t i = 0; i < WRITERS + READERS; i++)
        CHECK(pthread_create(&threads[i], NULL, i < WRITERS ? write_rounds : read_rounds, (void *)i) == 0);
    for (size_t i = 0; i < WRITERS + READERS; i++) CHECK(pthread_join(threads[i], NULL) == 0);

    forebay_scan *scan = forebay_scan_new(table, NULL, NULL, 0, NULL, 0, FOREBAY_BACKWARD, &error);
    forebay_entry entries[100];
    size_t found, all = 0;
    while ((found = forebay_scan_next(scan, entries, 100, &error)) > 0) all += found;
    CHECK(error == NULL && all == (size_t)WRITERS * ROUNDS * ROUND);
    forebay_scan_free(scan);
    forebay_table_free(table);
    MUST(forebay_db_close(db, &error));
    return 0;
}
