/* LevelDB's calls, in the order in which a program meets them, and what they promise. */
#include <leveldb/c.h>
#include <stdbool.h>

#include "check.h"

static char *error;
static leveldb_t *db;
static leveldb_readoptions_t *reading;
static leveldb_writeoptions_t *writing;
static int destroyed;

#define FINE()                                                        \
    do {                                                              \
        if (error != NULL) {                                          \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, error); \
            abort();                                                  \
        }                                                             \
    } while (0)

static void failed(const char *text) {
    CHECK(error != NULL && strstr(error, text) != NULL);
    leveldb_free(error);
    error = NULL;
}

static void has(const char *key, const char *expected) {
    size_t bytes = 77;
    char *value = leveldb_get(db, reading, key, strlen(key), &bytes, &error);
    FINE();
    if (expected == NULL) CHECK(value == NULL && bytes == 0);
    else CHECK(value != NULL && bytes == strlen(expected) && memcmp(value, expected, bytes) == 0);
    free(value); /* as programs do */
}

static void at(leveldb_iterator_t *iterator, const char *key, const char *value) {
    size_t bytes;
    CHECK(leveldb_iter_valid(iterator));
    const char *found = leveldb_iter_key(iterator, &bytes);
    CHECK(bytes == strlen(key) && memcmp(found, key, bytes) == 0);
    found = leveldb_iter_value(iterator, &bytes);
    CHECK(bytes == strlen(value) && memcmp(found, value, bytes) == 0);
}

static void note_put(void *state, const char *key, size_t key_bytes, const char *value, size_t value_bytes) {
    char *text = state;
    snprintf(text + strlen(text), 100, "put %.*s %.*s;", (int)key_bytes, key, (int)value_bytes, value);
}

static void note_delete(void *state, const char *key, size_t key_bytes) {
    char *text = state;
    snprintf(text + strlen(text), 100, "delete %.*s;", (int)key_bytes, key);
}

static void destructor(void *state) { *(int *)state += 1; }
static int compare(void *state, const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
    (void)state;
    int order = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);
    return order ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}
static const char *bytewise(void *state) {
    (void)state;
    return "leveldb.BytewiseComparator";
}
static const char *reverse(void *state) {
    (void)state;
    return "reverse";
}
static char *create_filter(void *state, const char *const *keys, const size_t *key_bytes, int count, size_t *bytes) {
    (void)state, (void)keys, (void)key_bytes, (void)count;
    *bytes = 0;
    return NULL;
}
static unsigned char may_match(void *state, const char *key, size_t key_bytes, const char *filter, size_t bytes) {
    (void)state, (void)key, (void)key_bytes, (void)filter, (void)bytes;
    return 1;
}

static void opening(leveldb_options_t *options, const char *name) {
    leveldb_destroy_db(options, name, &error);
    FINE();
    CHECK(leveldb_open(options, name, &error) == NULL);
    /* A second error takes the place of the first. */
    CHECK(leveldb_open(options, name, &error) == NULL);
    failed(name);
    leveldb_comparator_t *other = leveldb_comparator_create(&destroyed, destructor, compare, reverse);
    leveldb_options_set_comparator(options, other);
    CHECK(leveldb_open(options, name, &error) == NULL);
    failed("comparator `reverse`");
    leveldb_comparator_destroy(other);
    CHECK(destroyed == 1);
    leveldb_comparator_t *same = leveldb_comparator_create(&destroyed, destructor, compare, bytewise);
    leveldb_options_set_comparator(options, same);
    leveldb_comparator_destroy(same);
    CHECK(destroyed == 2);
    leveldb_options_set_create_if_missing(options, 1);
    leveldb_options_set_error_if_exists(options, 1);
    db = leveldb_open(options, name, &error);
    FINE();
    CHECK(leveldb_open(options, name, &error) == NULL);
    failed(name);
}

static void batches(void) {
    leveldb_writebatch_t *batch = leveldb_writebatch_create(), *more = leveldb_writebatch_create();
    leveldb_writebatch_put(batch, "foo", 3, "gone", 4);
    leveldb_writebatch_clear(batch);
    leveldb_writebatch_put(batch, "bar", 3, "b", 1);
    leveldb_writebatch_put(batch, "box", 3, "c", 1);
    leveldb_writebatch_delete(more, "bar", 3);
    leveldb_writebatch_append(batch, more);
    leveldb_writebatch_destroy(more);
    leveldb_write(db, writing, batch, &error);
    FINE();
    has("foo", "hello");
    has("bar", NULL);
    has("box", "c");
    char text[400] = "";
    leveldb_writebatch_iterate(batch, text, note_put, note_delete);
    CHECK(strcmp(text, "put bar b;put box c;delete bar;") == 0);
    /* As LevelDB's: what a batch has of itself comes twice. */
    leveldb_writebatch_append(batch, batch);
    text[0] = '\0';
    leveldb_writebatch_iterate(batch, text, note_put, note_delete);
    CHECK(strcmp(text, "put bar b;put box c;delete bar;put bar b;put box c;delete bar;") == 0);
    leveldb_write(db, writing, batch, &error);
    FINE();
    has("bar", NULL);
    has("box", "c");
    leveldb_writebatch_destroy(batch);
}

static void iterators(void) {
    leveldb_iterator_t *iterator = leveldb_create_iterator(db, reading);
    CHECK(!leveldb_iter_valid(iterator));
    leveldb_iter_seek_to_first(iterator);
    at(iterator, "box", "c");
    leveldb_iter_next(iterator);
    at(iterator, "foo", "hello");
    leveldb_iter_prev(iterator);
    at(iterator, "box", "c");
    leveldb_iter_prev(iterator);
    CHECK(!leveldb_iter_valid(iterator));
    leveldb_iter_seek_to_last(iterator);
    at(iterator, "foo", "hello");
    leveldb_iter_seek(iterator, "b", 1);
    at(iterator, "box", "c");
    leveldb_iter_seek(iterator, "z", 1);
    CHECK(!leveldb_iter_valid(iterator));
    leveldb_iter_get_error(iterator, &error);
    FINE();
    leveldb_iter_destroy(iterator);
}

static void sizes_and_properties(void) {
    const char *starts[] = {"a", "k00005000"}, *limits[] = {"k00005000", "z"};
    size_t start_bytes[] = {1, 9}, limit_bytes[] = {9, 1};
    uint64_t sizes[2] = {0, 0};
    leveldb_writeoptions_set_sync(writing, 0);
    for (int i = 0; i < 10000; i++) {
        char key[16], value[32];
        snprintf(key, sizeof key, "k%08d", i);
        snprintf(value, sizeof value, "value-%08d", i);
        leveldb_put(db, writing, key, 9, value, strlen(value), &error);
        FINE();
    }
    leveldb_approximate_sizes(db, 2, starts, start_bytes, limits, limit_bytes, sizes);
    CHECK(sizes[0] > 0 && sizes[1] > 0);
    leveldb_approximate_sizes(db, -1, starts, start_bytes, limits, limit_bytes, sizes);
    CHECK(leveldb_property_value(db, "leveldb.nosuch") == NULL);
    const char *known[] = {"leveldb.stats", "leveldb.sstables", "leveldb.approximate-memory-usage",
                           "leveldb.num-files-at-level0"};
    for (int i = 0; i < 4; i++) {
        char *value = leveldb_property_value(db, known[i]);
        CHECK(value != NULL && *value != 0);
        leveldb_free(value);
    }
}

static void snapshots(void) {
    const leveldb_snapshot_t *snapshot = leveldb_create_snapshot(db);
    leveldb_delete(db, writing, "foo", 3, &error);
    FINE();
    leveldb_readoptions_set_snapshot(reading, snapshot);
    has("foo", "hello");
    leveldb_iterator_t *iterator = leveldb_create_iterator(db, reading);
    leveldb_iter_seek(iterator, "foo", 3);
    at(iterator, "foo", "hello");
    leveldb_iter_destroy(iterator);
    leveldb_readoptions_set_snapshot(reading, NULL);
    has("foo", NULL);
    leveldb_release_snapshot(db, snapshot);
}

/* What LevelDB leaves undefined is an error here, or nothing. */
static void nulls(void) {
    leveldb_put(NULL, writing, "a", 1, "b", 1, &error);
    failed("db is a null pointer");
    leveldb_put(db, NULL, "a", 1, "b", 1, &error);
    failed("options is a null pointer");
    leveldb_get(db, reading, NULL, 1, NULL, &error);
    failed("key is a null pointer");
    leveldb_write(db, writing, NULL, &error);
    failed("batch is a null pointer");
    leveldb_open(NULL, "a", &error);
    failed("options is a null pointer");
    leveldb_put(NULL, NULL, NULL, 0, NULL, 0, NULL);
    CHECK(leveldb_create_iterator(NULL, NULL) == NULL && leveldb_iter_valid(NULL) == 0);
    leveldb_iter_next(NULL);
    leveldb_iter_destroy(NULL);
    leveldb_writebatch_put(NULL, "a", 1, "b", 1);
    leveldb_close(NULL);
    leveldb_free(NULL);
}

int main(int count, char **arguments) {
    CHECK(count == 3 && leveldb_major_version() == 1 && leveldb_minor_version() >= 20);
    const char *name = arguments[1];
    leveldb_env_t *env = leveldb_create_default_env();
    leveldb_cache_t *cache = leveldb_cache_create_lru(1 << 20);
    char *test_directory = leveldb_env_get_test_directory(env);
    CHECK(test_directory != NULL && *test_directory == '/');
    leveldb_free(test_directory);
    leveldb_options_t *options = leveldb_options_create();
    leveldb_options_set_cache(options, cache);
    leveldb_options_set_env(options, env);
    leveldb_options_set_info_log(options, NULL);
    leveldb_options_set_write_buffer_size(options, 100000);
    leveldb_options_set_paranoid_checks(options, 1);
    leveldb_options_set_max_open_files(options, 10);
    leveldb_options_set_block_size(options, 1024);
    leveldb_options_set_block_restart_interval(options, 8);
    leveldb_options_set_max_file_size(options, 3 << 20);
    leveldb_options_set_compression(options, leveldb_no_compression);
    reading = leveldb_readoptions_create();
    leveldb_readoptions_set_verify_checksums(reading, 1);
    leveldb_readoptions_set_fill_cache(reading, 0);
    writing = leveldb_writeoptions_create();
    leveldb_writeoptions_set_sync(writing, 1);

    opening(options, name);
    has("foo", NULL);
    leveldb_put(db, writing, "foo", 3, "hello", 5, &error);
    FINE();
    has("foo", "hello");
    leveldb_compact_range(db, NULL, 0, NULL, 0);
    leveldb_compact_range(db, "a", 1, "z", 1);
    has("foo", "hello");
    batches();
    iterators();
    sizes_and_properties();
    snapshots();
    nulls();

    /* Repaired, and opened again with another compression. */
    leveldb_close(db);
    leveldb_options_set_create_if_missing(options, 0);
    leveldb_options_set_error_if_exists(options, 0);
    leveldb_options_set_compression(options, leveldb_snappy_compression);
    leveldb_repair_db(options, name, &error);
    FINE();
    db = leveldb_open(options, name, &error);
    FINE();
    has("foo", NULL);
    has("box", "c");
    has("k00001234", "value-00001234");

    leveldb_filterpolicy_t *bloom = leveldb_filterpolicy_create_bloom(10);
    leveldb_filterpolicy_t *own =
        leveldb_filterpolicy_create(&destroyed, destructor, create_filter, may_match, bytewise);
    leveldb_options_set_filter_policy(options, own);
    leveldb_options_set_filter_policy(options, bloom);
    leveldb_filterpolicy_destroy(own);
    leveldb_filterpolicy_destroy(bloom);
    CHECK(destroyed == 3);

    leveldb_close(db);
    leveldb_destroy_db(options, name, &error);
    FINE();
    leveldb_options_destroy(options);
    leveldb_readoptions_destroy(reading);
    leveldb_writeoptions_destroy(writing);
    leveldb_cache_destroy(cache);
    leveldb_env_destroy(env);
    return 0;
}
