#include <sqlite3.h>

/* sqlite3_config and sqlite3_db_config are variadic; SQLITE_TRANSIENT is a cast in a macro; the method table of a file is reached through
   pointers to functions that take the file itself. Swift cannot write these. */

/* Without statistics of memory, each of whose numbers takes a lock, and without a store of 20 pages. */
static inline void csqlite_configure_for_one_shot_use(void) {
  sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  sqlite3_config(SQLITE_CONFIG_PAGECACHE, (void *)0, 0, 0);
}

static inline int csqlite_configure(sqlite3 *database, int option, int value) {
  return sqlite3_db_config(database, option, value, (int *)0);
}

static inline int csqlite_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 count) {
  return sqlite3_bind_blob64(statement, index, bytes, count, SQLITE_TRANSIENT);
}

/* The size of the main file in bytes, or -1. */
static inline sqlite3_int64 csqlite_file_size(sqlite3 *database) {
  sqlite3_file *file = 0;
  sqlite3_int64 size = -1;
  if (sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK) return -1;
  if (!file || !file->pMethods || file->pMethods->xFileSize(file, &size) != SQLITE_OK) return -1;
  return size;
}

/* Reads from the main file through SQLite's own descriptor: to open and close another one would drop the locks of this process.
   Returns a result code. */
static inline int csqlite_read(sqlite3 *database, void *bytes, int count, sqlite3_int64 offset) {
  sqlite3_file *file = 0;
  int status = sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  if (status != SQLITE_OK) return status;
  if (!file || !file->pMethods) return SQLITE_CANTOPEN;
  return file->pMethods->xRead(file, bytes, count, offset);
}
