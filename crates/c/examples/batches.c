/* Many records a call: batches over two tables, put_many, multi_get. */
#include <forebay.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static forebay_error *error;

static void must(bool ok) {
    if (ok) return;
    fprintf(stderr, "batches: %s\n", forebay_error_message(error));
    exit(1);
}

int main(int count, char **arguments) {
    forebay_db *db = forebay_db_open(count > 1 ? arguments[1] : "batches.db", NULL, &error);
    must(db != NULL);
    forebay_table *events = forebay_table_open(db, "events", NULL, &error);
    must(events != NULL);
    forebay_table *totals = forebay_table_open(db, "totals", NULL, &error);
    must(totals != NULL);

    /* All of it or nothing, over any tables. What is wrong with a put is told by the write. */
    forebay_batch *batch = forebay_batch_new();
    for (uint32_t id = 0; id < 1000; id++) forebay_batch_put(batch, events, &id, sizeof id, "seen", 4);
    forebay_batch_put(batch, totals, "events", 6, "1000", 4);
    uint64_t sequence;
    must(forebay_db_write(db, batch, FOREBAY_DISK, &sequence, &error));
    printf("the last record has number %" PRIu64 "\n", sequence);
    forebay_batch_free(batch);

    /* The same of arrays, for one table. */
    uint32_t ids[3] = {1, 2, 5000};
    forebay_slice keys[3], values[3];
    for (int i = 0; i < 3; i++) {
        keys[i] = (forebay_slice){(const char *)&ids[i], sizeof ids[i]};
        values[i] = (forebay_slice){"again", 5};
    }
    must(forebay_db_put_many(db, events, keys, values, 2, FOREBAY_OS, &error));

    must(forebay_table_multi_get(events, NULL, keys, values, 3, &error));
    for (int i = 0; i < 3; i++) printf("%" PRIu32 ": %s\n", ids[i], values[i].data ? values[i].data : "not there");
    forebay_values_free(values, 3);

    forebay_table_free(events);
    forebay_table_free(totals);
    must(forebay_db_close(db, &error));
    return 0;
}
