/// A state change worth a log line.
package enum StoreEvent: Sendable, Equatable, CustomStringConvertible {
    /// The circuit breaker opened: calls fail at once until a probe succeeds.
    case suspended(StoreError)
    /// The circuit breaker closed: calls are sent again.
    case resumed
    /// Requests are not signed: there are no keys.
    case unsigned
    /// Requests are signed with the keys of a source; see ``RoleCredentials``.
    case signed(source: String)
    /// The first write since the last success that could not be queued, and why.
    case queueFailed(StoreError)
    /// The first queued rendition that can never be stored, and why.
    case discarded(StoreError)

    /// Whether the event reports a problem, rather than its end.
    package var isProblem: Bool {
        switch self {
        case .resumed, .unsigned, .signed: false
        case .suspended, .queueFailed, .discarded: true
        }
    }

    package var description: String {
        switch self {
        case .suspended(let error): "The shared store is suspended; renditions are stored locally only. \(error)"
        case .resumed: "The shared store works again."
        case .unsigned: "Requests to the shared store are not signed: there are no keys."
        case .signed(let source): "Requests to the shared store are signed with keys from \(source)."
        case .queueFailed(let error): "A rendition could not be queued for the shared store. \(error)"
        case .discarded(let error):
            "A rendition was not stored and is not tried again; further ones are counted without a line. \(error)"
        }
    }
}

/// The kinds of requests that metrics distinguish.
package enum StoreOperation: String, Sendable, CaseIterable {
    case get, put, delete, list
}
