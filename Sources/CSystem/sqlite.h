#ifndef GIFREEL_CSYSTEM_SQLITE_H
#define GIFREEL_CSYSTEM_SQLITE_H

// SQLite 3, with functions in place of its macros, which Swift cannot import.

#include <errno.h>
#include <sqlite3.h>
#include <stddef.h>

/// Binds a copy of the text.
static inline int csqlite_bind_text(sqlite3_stmt *statement, int index, const char *text, sqlite3_uint64 length) {
    return sqlite3_bind_text64(statement, index, text, length, SQLITE_TRANSIENT, SQLITE_UTF8);
}

/// Binds a copy of the bytes. No bytes are bound as an empty blob, not as null.
static inline int csqlite_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 length) {
    if (length == 0) return sqlite3_bind_zeroblob(statement, index, 0);
    return sqlite3_bind_blob64(statement, index, bytes, length, SQLITE_TRANSIENT);
}

/// The code of a disk that could not read the database or its log; 0 if it could. Each file keeps the code of its latest failed call
/// for as long as it is open.
static inline int csqlite_read_error(sqlite3 *connection) {
    int code = 0;
    sqlite3_file_control(connection, "main", SQLITE_FCNTL_LAST_ERRNO, &code);
    if (code == EIO || code == ENXIO) return code;
    sqlite3_file *log = NULL;
    sqlite3_file_control(connection, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
    code = 0;
    if (log != NULL && log->pMethods != NULL) log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &code);
    return code == EIO || code == ENXIO ? code : 0;
}

#endif
