package store

// migrations make the schema: the n-th takes a file from version n-1 to n. One that
// has been released is never changed.
var migrations = [...]string{
	`CREATE TABLE document (
		kind TEXT NOT NULL,
		id   TEXT NOT NULL,
		at   TEXT NOT NULL, -- of the first version, which orders the list
		seq  INTEGER NOT NULL,
		body BLOB NOT NULL,
		PRIMARY KEY (kind, id)
	) STRICT, WITHOUT ROWID;
	CREATE INDEX document_order ON document (kind, seq);

	CREATE TABLE audit (
		id      INTEGER PRIMARY KEY AUTOINCREMENT,
		at      TEXT NOT NULL,
		who     TEXT NOT NULL,
		role    TEXT NOT NULL,
		via     TEXT NOT NULL,
		what    TEXT NOT NULL,
		subject TEXT NOT NULL,
		why     TEXT NOT NULL,
		action  TEXT NOT NULL,
		undo    TEXT NOT NULL,
		digest  TEXT NOT NULL
	) STRICT;
	CREATE TRIGGER audit_update BEFORE UPDATE ON audit BEGIN
		SELECT RAISE(ABORT, 'the audit log is only added to');
	END;
	CREATE TRIGGER audit_delete BEFORE DELETE ON audit BEGIN
		SELECT RAISE(ABORT, 'the audit log is only added to');
	END;
	CREATE TRIGGER audit_insert BEFORE INSERT ON audit
	WHEN EXISTS (SELECT 1 FROM audit WHERE id >= NEW.id) BEGIN
		SELECT RAISE(ABORT, 'the audit log is only added to');
	END;

	CREATE TABLE point (
		seq   INTEGER PRIMARY KEY AUTOINCREMENT, -- in the order written, whatever the clock says
		level INTEGER NOT NULL,
		step  INTEGER NOT NULL,
		body  BLOB NOT NULL,
		UNIQUE (level, step)
	) STRICT;
	CREATE INDEX point_order ON point (level, seq);`,
}
