/// How far the background check of all files has come.
struct Scrubber: Sendable {
    /// The sequence of the object it checked last.
    var cursor: Int64 = 0
}
