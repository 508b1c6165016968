/** What SQLite gives and takes: numbers, texts, bytes, or nothing; a row by the names of its columns. */
export type SqlValue = number | string | Uint8Array | null;
export type SqlRow = Record<string, SqlValue>;
