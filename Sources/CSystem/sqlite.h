#ifndef GIFREEL_CSYSTEM_SQLITE_H
#define GIFREEL_CSYSTEM_SQLITE_H

// SQLite 3, with functions in place of its macros, which Swift cannot import.

#include <sqlite3.h>

/// Binds a copy of the text.
static inline int csqlite_bind_text(sqlite3_stmt *statement, int index, const char *text, sqlite3_uint64 length) {
    return sqlite3_bind_text64(statement, index, text, length, SQLITE_TRANSIENT, SQLITE_UTF8);
}

/// Binds a copy of the bytes. No bytes are bound as an empty blob, not as null.
static inline int csqlite_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 length) {
    if (length == 0) return sqlite3_bind_zeroblob(statement, index, 0);
    return sqlite3_bind_blob64(statement, index, bytes, length, SQLITE_TRANSIENT);
}

#endif
