/* Savepoint and rollback, a checkpoint, and what verification says of it. */
#include <forebay.h>
#include <stdio.h>
#include <stdlib.h>

static forebay_error *error;

static void must(bool ok) {
    if (ok) return;
    fprintf(stderr, "backup: %s\n", forebay_error_message(error));
    exit(1);
}

int main(int count, char **arguments) {
    const char *path = count > 1 ? arguments[1] : "backup.db";
    char copy[4096];
    snprintf(copy, sizeof copy, "%s.copy", path);
    forebay_db *db = forebay_db_open(path, NULL, &error);
    must(db != NULL);
    forebay_table *users = forebay_table_open(db, "users", NULL, &error);
    must(users != NULL);

    must(forebay_table_put(users, "ada", 3, "1815", 4, &error));
    must(forebay_db_savepoint(db, "monday", NULL, &error));
    must(forebay_table_delete(users, "ada", 3, &error));
    must(forebay_db_rollback(db, "monday", &error));
    must(forebay_db_drop_savepoint(db, "monday", &error));

    char *year = forebay_table_get(users, NULL, "ada", 3, NULL, &error);
    printf("ada is back: %s\n", year ? year : "no");
    forebay_free(year);

    char *files = forebay_db_checkpoint(db, copy, &error);
    must(files != NULL);
    forebay_free(files);
    forebay_table_free(users);
    must(forebay_db_close(db, &error));

    db = forebay_db_open(copy, NULL, &error);
    must(db != NULL);
    size_t problems;
    char *report = forebay_db_verify(db, &problems, &error);
    must(report != NULL);
    printf("the copy has %zu problems: %s\n", problems, report);
    forebay_free(report);
    must(forebay_db_close(db, &error));
    must(forebay_destroy(copy, &error));
    return 0;
}
