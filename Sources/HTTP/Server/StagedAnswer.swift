/// An answer that is made and waits to be sent with those of the other connections that had something in the same turn.
struct StagedAnswer {
    /// Bytes of answers that wait at most: they are to stay in the processor's cache.
    static let byteLimit = 32 * 1024

    let connection: Connection
    /// Head, and body where that is short; kept in the loop's output buffer.
    let bytes: Range<Int>
    /// What follows them; in memory.
    let body: Segment?
    /// What the access log will say; nil without a log.
    let entry: AccessEntry?
    /// The entry's texts, one after the other; kept in the loop's buffer for them.
    let texts: Range<Int>
}
