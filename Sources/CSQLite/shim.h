#include <sqlite3.h>

/* The parts of SQLite that Swift cannot call: variadic functions (sqlite3_config, sqlite3_db_config), SQLITE_TRANSIENT
   (a cast in a macro), and the function pointers in a file's method table. */

/* Turns off memory statistics, which take a lock for each number, and the cache of 20 pages. */
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

/* The size of the main file in bytes, or -1 if unknown. */
static inline sqlite3_int64 csqlite_file_size(sqlite3 *database) {
  sqlite3_file *file = 0;
  sqlite3_int64 size = -1;
  if (sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK) return -1;
  if (!file || !file->pMethods || file->pMethods->xFileSize(file, &size) != SQLITE_OK) return -1;
  return size;
}

/* Reads from the main file and returns a result code. It uses SQLite's own descriptor because closing another one would
   drop this process's locks. */
static inline int csqlite_read(sqlite3 *database, void *bytes, int count, sqlite3_int64 offset) {
  sqlite3_file *file = 0;
  int status = sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  if (status != SQLITE_OK) return status;
  if (!file || !file->pMethods) return SQLITE_CANTOPEN;
  return file->pMethods->xRead(file, bytes, count, offset);
}
