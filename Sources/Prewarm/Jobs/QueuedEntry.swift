internal import Renditions

/// The stored form of a list entry, which any node may process later.
struct QueuedEntry: Codable {
    let url: String
    let format: String
    let options: [String: String]
    let number: Int
    /// Attempts after the first.
    let retries: Int
    /// The number of entries of the list that a node works on at the same time.
    let concurrency: Int

    var entry: PrewarmEntry { PrewarmEntry(url: url, format: format, options: options) }
}

extension PrewarmEntry {
    /// Returns the entry as lists store it; see ``QueuedEntry``.
    package func queued(_ number: Int, retries: Int, concurrency: Int) -> [UInt8] {
        JSONText.encode(
            QueuedEntry(
                url: url, format: format, options: options, number: number, retries: retries, concurrency: concurrency))
    }
}
