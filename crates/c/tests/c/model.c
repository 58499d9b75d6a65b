/* Random operations on a table in key order, one in hash order, and a model of both; every answer is compared. */
#include <forebay.h>

#include "check.h"

enum { KEYS = 300, VALUE_BYTES_MAX = 90, OPERATIONS = 2500, BLOCK_MAX = 40 };

typedef struct {
    bool is_there;
    size_t bytes;
    char data[VALUE_BYTES_MAX];
} Value;

typedef struct {
    Value values[KEYS];
} Model;

static uint64_t seed;
static forebay_error *error;
static const char *path;
static forebay_db *db;
static forebay_table *ordered, *hashed;
static Model model, kept, seen;
static forebay_snapshot *snapshot;
static bool is_kept, is_made;

/* Keys ascend with their numbers. */
static forebay_slice key_of(size_t number) {
    static char names[8][16];
    static size_t next;
    char *name = names[next++ % 8];
    snprintf(name, sizeof names[0], "key-%05zu", number);
    return (forebay_slice){name, strlen(name)};
}

static size_t number_of(forebay_slice key) {
    char name[16] = {0};
    CHECK(key.bytes < sizeof name);
    memcpy(name, key.data, key.bytes);
    return (size_t)atoi(name + 4);
}

static bool is_same(const Value *value, const char *data, size_t bytes) {
    if (!value->is_there || data == NULL) return !value->is_there && data == NULL;
    return value->bytes == bytes && memcmp(value->data, data, bytes) == 0;
}

static Value a_value(void) {
    Value value = {.is_there = true, .bytes = below(&seed, VALUE_BYTES_MAX)};
    for (size_t i = 0; i < value.bytes; i++) value.data[i] = (char)drawn(&seed);
    return value;
}

static void open_all(void) {
    forebay_options *options = forebay_options_new();
    MUST(forebay_options_set(options, "memory", "1M", &error));
    MUST(forebay_options_set(options, "write-buffer", "16K", &error));
    db = forebay_db_open(path, options, &error);
    MUST(db != NULL);
    forebay_options_free(options);
    forebay_table_options *options_of_table = forebay_table_options_new();
    /* What is there is opened as it is. */
    const char *layout = is_made ? "existing" : "layout";
    const char *value = is_made ? "true" : below(&seed, 2) ? "leveling:t=4" : "wb-tree:ordered";
    MUST(forebay_table_options_set(options_of_table, layout, value, &error));
    ordered = forebay_table_open(db, "ordered", options_of_table, &error);
    MUST(ordered != NULL);
    forebay_table_options_free(options_of_table);
    is_made = true;
    hashed = forebay_table_open(db, "hashed", NULL, &error);
    MUST(hashed != NULL);
}

static void close_all(void) {
    forebay_table_free(ordered);
    forebay_table_free(hashed);
    MUST(forebay_db_close(db, &error));
}

static void write_some(void) {
    /* A sync takes a hundred times as long as all else. */
    forebay_durability durability = below(&seed, 60) == 0 ? FOREBAY_DISK : (forebay_durability)below(&seed, 2);
    forebay_batch *batch = forebay_batch_new();
    size_t count = 1 + below(&seed, 20);
    for (size_t i = 0; i < count; i++) {
        size_t number = below(&seed, KEYS);
        forebay_slice key = key_of(number);
        if (below(&seed, 4) == 0) {
            forebay_batch_delete(batch, ordered, key.data, key.bytes);
            forebay_batch_delete(batch, hashed, key.data, key.bytes);
            model.values[number].is_there = false;
        } else {
            Value value = a_value();
            forebay_batch_put(batch, ordered, key.data, key.bytes, value.data, value.bytes);
            forebay_batch_put(batch, hashed, key.data, key.bytes, value.data, value.bytes);
            model.values[number] = value;
        }
    }
    CHECK(forebay_batch_records(batch) == 2 * count && forebay_batch_bytes(batch) > 2 * count);
    uint64_t sequence = 0;
    MUST(forebay_db_write(db, batch, durability, &sequence, &error));
    CHECK(sequence == forebay_db_last_sequence(db) && forebay_batch_records(batch) == 0);
    forebay_batch_free(batch);
}

static void write_one(void) {
    size_t number = below(&seed, KEYS);
    forebay_slice key = key_of(number);
    Value value = a_value();
    if (below(&seed, 2)) {
        MUST(forebay_table_put(ordered, key.data, key.bytes, value.data, value.bytes, &error));
        forebay_slice slice = {value.data, value.bytes};
        MUST(forebay_db_put_many(db, hashed, &key, &slice, 1, FOREBAY_OS, &error));
        model.values[number] = value;
    } else {
        MUST(forebay_table_delete(ordered, key.data, key.bytes, &error));
        MUST(forebay_table_delete(hashed, key.data, key.bytes, &error));
        model.values[number].is_there = false;
    }
}

static void delete_range(void) {
    size_t from = below(&seed, KEYS), to = from + below(&seed, 12);
    forebay_slice low = key_of(from), high = key_of(to);
    MUST(forebay_table_delete_range(ordered, low.data, low.bytes, high.data, high.bytes, &error));
    forebay_batch *batch = forebay_batch_new();
    for (size_t number = from; number < to && number < KEYS; number++) {
        forebay_slice key = key_of(number);
        forebay_batch_delete(batch, hashed, key.data, key.bytes);
        model.values[number].is_there = false;
    }
    MUST(forebay_db_write(db, batch, FOREBAY_OS, NULL, &error));
    forebay_batch_free(batch);
}

static void get_some(const Model *expected, const forebay_snapshot *at) {
    forebay_table *table = below(&seed, 2) ? ordered : hashed;
    size_t number = below(&seed, KEYS + 1), bytes = 77;
    forebay_slice key = key_of(number);
    char *data = forebay_table_get(table, at, key.data, key.bytes, &bytes, &error);
    CHECK(error == NULL);
    Value none = {0};
    const Value *value = number < KEYS ? &expected->values[number] : &none;
    CHECK(is_same(value, data, bytes) && (data == NULL || data[bytes] == 0));
    forebay_free(data);

    forebay_slice keys[8], values[8];
    size_t numbers[8], count = below(&seed, 9);
    for (size_t i = 0; i < count; i++) {
        numbers[i] = below(&seed, KEYS);
        keys[i] = key_of(numbers[i]);
    }
    MUST(forebay_table_multi_get(table, at, keys, values, count, &error));
    for (size_t i = 0; i < count; i++)
        CHECK(is_same(&expected->values[numbers[i]], values[i].data, values[i].bytes));
    forebay_values_free(values, count);
}

static void scan_some(const Model *expected, const forebay_snapshot *at) {
    bool is_all = below(&seed, 4) == 0, is_hashed = is_all && below(&seed, 2);
    size_t from = is_all ? 0 : below(&seed, KEYS), to = is_all ? KEYS : from + below(&seed, KEYS - from + 1);
    forebay_direction direction = below(&seed, 2) ? FOREBAY_BACKWARD : FOREBAY_FORWARD;
    forebay_slice low = key_of(from), high = key_of(to);
    if (is_all) low = high = (forebay_slice){NULL, 0};
    forebay_scan *scan = forebay_scan_new(is_hashed ? hashed : ordered, at, low.data, low.bytes, high.data, high.bytes,
                                          direction, &error);
    MUST(scan != NULL);
    forebay_entry entries[BLOCK_MAX];
    size_t room = 1 + below(&seed, BLOCK_MAX), found, all = 0;
    size_t next = direction == FOREBAY_FORWARD ? from : to;
    while ((found = forebay_scan_next(scan, entries, room, &error)) > 0) {
        CHECK(found <= room);
        for (size_t i = 0; i < found; i++, all++) {
            size_t number = number_of(entries[i].key);
            CHECK(number >= from && number < to);
            CHECK(is_same(&expected->values[number], entries[i].value.data, entries[i].value.bytes));
            if (is_hashed) continue;
            /* Between this entry and the one before there is none. */
            if (direction == FOREBAY_FORWARD) {
                while (next < number) CHECK(!expected->values[next++].is_there);
                next = number + 1;
            } else {
                while (next > number + 1) CHECK(!expected->values[--next].is_there);
                next = number;
            }
        }
    }
    CHECK(error == NULL);
    size_t there = 0;
    for (size_t number = from; number < to; number++) there += expected->values[number].is_there;
    CHECK(all == there);
    forebay_scan_free(scan);
}

static void walk(const Model *expected, const forebay_snapshot *at) {
    forebay_cursor *cursor = forebay_cursor_new(ordered, at, &error);
    MUST(cursor != NULL);
    forebay_entry entry;
    long place = (long)below(&seed, KEYS);
    forebay_slice key = key_of((size_t)place);
    bool is_there, is_up = below(&seed, 2);
    is_there = is_up ? forebay_cursor_seek(cursor, key.data, key.bytes, &entry, &error)
                     : forebay_cursor_seek_for_prev(cursor, key.data, key.bytes, &entry, &error);
    for (int step = 0; step < 12; step++) {
        CHECK(error == NULL);
        while (place >= 0 && place < KEYS && !expected->values[place].is_there) place += is_up ? 1 : -1;
        CHECK(is_there == (place >= 0 && place < KEYS));
        if (!is_there) break;
        CHECK(number_of(entry.key) == (size_t)place);
        CHECK(is_same(&expected->values[place], entry.value.data, entry.value.bytes));
        is_up = below(&seed, 3) ? is_up : !is_up;
        place += is_up ? 1 : -1;
        is_there = is_up ? forebay_cursor_next(cursor, &entry, &error) : forebay_cursor_prev(cursor, &entry, &error);
    }
    forebay_cursor_free(cursor);
}

static void keep_or_bring_back(void) {
    if (!is_kept) {
        MUST(forebay_db_savepoint(db, "kept", NULL, &error));
        kept = model;
    } else {
        if (below(&seed, 2)) {
            MUST(forebay_db_rollback(db, "kept", &error));
            model = kept;
        }
        MUST(forebay_db_drop_savepoint(db, "kept", &error));
    }
    is_kept = !is_kept;
}

static void one_operation(void) {
    switch (below(&seed, 40)) {
    case 0:
        if (below(&seed, 5) == 0) MUST(forebay_db_flush(db, &error));
        break;
    case 1:
        if (below(&seed, 8)) break;
        if (snapshot) forebay_snapshot_free(snapshot);
        snapshot = NULL;
        close_all();
        open_all();
        break;
    case 2:
        if (snapshot) forebay_snapshot_free(snapshot);
        snapshot = forebay_snapshot_new(db, &error);
        MUST(snapshot != NULL);
        seen = model;
        break;
    case 3:
        if (below(&seed, 4) == 0) keep_or_bring_back();
        break;
    case 4:
    case 5:
        delete_range();
        break;
    case 6:
        if (below(&seed, 20) == 0) MUST(forebay_table_compact(ordered, &error));
        break;
    default:
        if (below(&seed, 2)) write_some();
        else write_one();
    }
    bool is_before = snapshot != NULL && below(&seed, 3) == 0;
    const Model *expected = is_before ? &seen : &model;
    const forebay_snapshot *at = is_before ? snapshot : NULL;
    get_some(expected, at);
    if (below(&seed, 10) == 0) scan_some(expected, at);
    if (below(&seed, 4) == 0) walk(expected, at);
}

int main(int count, char **arguments) {
    CHECK(count == 3);
    path = arguments[1];
    seed = strtoull(arguments[2], NULL, 10);
    open_all();
    for (int i = 0; i < OPERATIONS; i++) one_operation();
    forebay_snapshot_free(snapshot);
    size_t problems = 77;
    char *report = forebay_db_verify(db, &problems, &error);
    MUST(report != NULL);
    CHECK(problems == 0);
    forebay_free(report);
    close_all();
    return 0;
}
