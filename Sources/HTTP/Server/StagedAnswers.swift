/// Answers that are made and wait to be sent together. Their bytes are kept in the loop's output buffer.
struct StagedAnswers {
    /// Bytes that are kept at most before what is staged is sent: they are to stay in the processor's cache.
    static let byteLimit = 32 * 1024

    struct Answer {
        let connection: Connection
        /// Head, and body where that is short, in the output buffer.
        let bytes: Range<Int>
        /// What follows them; in memory.
        let body: Segment?
        /// What the access log will say; nil without a log.
        let entry: AccessEntry?
        /// The entry's texts, in ``StagedAnswers/texts``.
        let texts: Range<Int>
    }

    private(set) var answers: [Answer] = []
    /// The texts of all entries, one after the other.
    var texts: [UInt8] = []

    mutating func append(_ answer: Answer) {
        answers.append(answer)
    }

    /// Forgets all answers, and keeps the storage.
    mutating func removeAll() {
        answers.removeAll(keepingCapacity: true)
        texts.removeAll(keepingCapacity: true)
    }
}
