internal import Fleet
package import Store

extension PrewarmQueue {
    package static let owned = Ledger.Tables(
        owner: "prewarm",
        steps: [
            """
            CREATE TABLE jobs (
                number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, retries INTEGER NOT NULL, concurrency INTEGER NOT NULL,
                callback TEXT, cancelled INTEGER NOT NULL, reported INTEGER NOT NULL,
                -- The number of outcomes.
                finished INTEGER NOT NULL
            );
            CREATE TABLE entries (
                job INTEGER NOT NULL, number INTEGER NOT NULL, entry BLOB NOT NULL,
                -- Null without an outcome; its place in the order of arrival.
                outcome BLOB, arrival INTEGER,
                PRIMARY KEY (job, number)
            ) WITHOUT ROWID;
            CREATE TRIGGER job_removed AFTER DELETE ON jobs BEGIN DELETE FROM entries WHERE job = OLD.number; END;
            """,
            """
            ALTER TABLE jobs ADD COLUMN added INTEGER NOT NULL DEFAULT 0;
            -- The idempotency key of the request, and what it says.
            ALTER TABLE jobs ADD COLUMN request TEXT;
            ALTER TABLE jobs ADD COLUMN content TEXT;
            """,
            // Adds sums, so that a list that has ended needs no entries.
            """
            ALTER TABLE jobs ADD COLUMN total INTEGER NOT NULL DEFAULT 0;
            ALTER TABLE jobs ADD COLUMN hits INTEGER NOT NULL DEFAULT 0;
            ALTER TABLE jobs ADD COLUMN failed INTEGER NOT NULL DEFAULT 0;
            ALTER TABLE jobs ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
            ALTER TABLE jobs ADD COLUMN saved INTEGER NOT NULL DEFAULT 0;
            -- In milliseconds since 1970; null before the end.
            ALTER TABLE jobs ADD COLUMN ended INTEGER;
            -- The first failures, numbered from 1.
            CREATE TABLE failures (
                job INTEGER NOT NULL, place INTEGER NOT NULL, url TEXT NOT NULL, code TEXT NOT NULL, detail TEXT NOT NULL,
                PRIMARY KEY (job, place)
            ) WITHOUT ROWID;
            CREATE TRIGGER job_forgotten AFTER DELETE ON jobs BEGIN DELETE FROM failures WHERE job = OLD.number; END;

            -- What version 0.2 has not finished begins again, as hits. An entry has the options of its list, as those of a cluster.
            UPDATE jobs SET total = (SELECT count(*) FROM entries WHERE job = jobs.number);
            DELETE FROM jobs WHERE cancelled <> 0 OR finished >= total AND (callback IS NULL OR reported <> 0);
            UPDATE jobs SET finished = 0;
            UPDATE entries SET outcome = NULL, arrival = NULL, entry = CAST(json_object(
                    'url', CAST(entry AS TEXT) ->> 'url', 'format', CAST(entry AS TEXT) ->> 'format',
                    'options', json_remove(CAST(entry AS TEXT), '$.url', '$.format'),
                    'number', entries.number, 'retries', jobs.retries, 'concurrency', jobs.concurrency) AS BLOB)
                FROM jobs WHERE jobs.number = job AND json_valid(CAST(entry AS TEXT));
            ALTER TABLE jobs DROP COLUMN retries;
            CREATE INDEX entries_pending ON entries (job, number) WHERE outcome IS NULL;
            CREATE INDEX entries_arrived ON entries (job, arrival) WHERE arrival IS NOT NULL;
            """,
        ],
        // Salvages complete lists that have not ended. They start over, because the cache is empty.
        salvage: { damaged, new in
            var ids: [String] = []
            // Keeps the rows before the first damaged page.
            try? damaged.forEach("SELECT id FROM jobs WHERE ended IS NULL ORDER BY number") { ids.append(try $0.value(0)) }
            for id in ids {
                let list = try? damaged.first(
                    "SELECT number, concurrency, callback, request, content, added, total FROM jobs WHERE id = ?", [id]
                ) { row in
                    let (number, key, content): (Int64, String?, String?) = (
                        try row.value(0), try row.value(3), try row.value(4)
                    )
                    let order = PrewarmOrder(
                        id: id,
                        payloads: try damaged.all("SELECT entry FROM entries WHERE job = ? ORDER BY number", [number]) {
                            try $0.value(0)
                        },
                        concurrency: try row.value(1), callback: try row.value(2),
                        request: key.map { PrewarmRequest(key: $0, content: content ?? "") })
                    return (order: order, added: try row.value(5) as Int64, total: try row.value(6) as Int)
                }
                guard let list, list.order.payloads.count == list.total else { continue }
                try PrewarmTables.insert(list.order, added: list.added, into: new)
            }
        })
}
