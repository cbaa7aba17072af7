/// The body of `GET /top` (docs/api.md).
package struct TopListing: Codable, Sendable {
    package struct Entry: Codable, Sendable, Equatable {
        /// A host, the address of a client, the name of a mount, or a source without scheme and query.
        package let key: String
        /// Milliseconds, bytes or requests.
        package let amount: Int64
        /// The most by which the amount may be too large.
        package let error: Int64
    }

    package let by: UsageBoard.Measure
    package let of: UsageBoard.Subject
    /// The minutes that are added up, beside the current one.
    package let minutes: Int
    /// The largest first.
    package let entries: [Entry]
}
