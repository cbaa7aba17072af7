/// Collects a loop's finished requests into batches. It belongs to one loop thread.
final class AccessRecorder {
    /// Requests in a full batch.
    static let batchSize = 512

    private let log: AccessLog
    /// Nothing that a batch does comes back to this object, which a check at run time would look at for each request.
    @exclusivity(unchecked) private var batch = HTTPAccessBatch()

    init(_ log: AccessLog) {
        self.log = log
    }

    var isEmpty: Bool { batch.count == 0 }

    /// Records a request whose texts are at hand.
    func record(_ entry: AccessEntry, _ texts: AccessTexts) {
        batch.append(entry, texts)
        if batch.count >= Self.batchSize { flush() }
    }

    /// Records a request whose texts were put one after the other before.
    func record(_ entry: AccessEntry, texts: UnsafeRawBufferPointer) {
        batch.append(entry, texts: texts)
        if batch.count >= Self.batchSize { flush() }
    }

    /// Hands over what has been recorded.
    func flush() {
        guard !isEmpty else { return }
        let full = batch
        batch = HTTPAccessBatch()
        log.post(full)
    }
}
