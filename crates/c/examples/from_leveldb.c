/* A program as it was written for LevelDB. cc from_leveldb.c $(pkg-config --cflags --libs forebay-leveldb) */
#include <leveldb/c.h>
#include <stdio.h>
#include <stdlib.h>

static void must(char *error) {
    if (error == NULL) return;
    fprintf(stderr, "from_leveldb: %s\n", error);
    exit(1);
}

int main(int count, char **arguments) {
    char *error = NULL;
    leveldb_options_t *options = leveldb_options_create();
    leveldb_options_set_create_if_missing(options, 1);
    leveldb_t *db = leveldb_open(options, count > 1 ? arguments[1] : "from_leveldb.db", &error);
    must(error);

    leveldb_writeoptions_t *writing = leveldb_writeoptions_create();
    leveldb_put(db, writing, "ada", 3, "1815", 4, &error);
    must(error);
    leveldb_put(db, writing, "grace", 5, "1906", 4, &error);
    must(error);

    leveldb_readoptions_t *reading = leveldb_readoptions_create();
    leveldb_iterator_t *iterator = leveldb_create_iterator(db, reading);
    for (leveldb_iter_seek_to_first(iterator); leveldb_iter_valid(iterator); leveldb_iter_next(iterator)) {
        size_t key_bytes, value_bytes;
        const char *key = leveldb_iter_key(iterator, &key_bytes);
        const char *value = leveldb_iter_value(iterator, &value_bytes);
        printf("%.*s\t%.*s\n", (int)key_bytes, key, (int)value_bytes, value);
    }
    leveldb_iter_get_error(iterator, &error);
    must(error);

    leveldb_iter_destroy(iterator);
    leveldb_readoptions_destroy(reading);
    leveldb_writeoptions_destroy(writing);
    leveldb_close(db);
    leveldb_options_destroy(options);
    return 0;
}
