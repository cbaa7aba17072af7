/// What the fetcher has done since it began, and does now.
package struct FetchCounters: Sendable {
    /// Fetches asked for.
    package internal(set) var started = 0
    /// Fetches that brought a source.
    package internal(set) var fetched = 0
    /// Fetches that were answered 304.
    package internal(set) var notModified = 0
    /// Fetches that failed, cancelled ones not counted.
    package internal(set) var failed = 0
    /// Fetches whose task was cancelled.
    package internal(set) var cancelled = 0
    /// Fetches refused because too many waited.
    package internal(set) var refusedBusy = 0
    /// Redirects followed.
    package internal(set) var redirects = 0
    /// Bytes of bodies received, of failed fetches too.
    package internal(set) var bytes = 0
    /// Connections opened.
    package internal(set) var connections = 0
    /// Connections not made because of their address or port.
    package internal(set) var refusedAddresses = 0
    /// Fetches with a request under way now.
    package internal(set) var active = 0
    /// Fetches that wait for a place now.
    package internal(set) var waiting = 0
}
