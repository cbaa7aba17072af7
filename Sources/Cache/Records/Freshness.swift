/// How far an alias may be trusted at some moment (RFC 9111 section 4.2, RFC 5861 section 3).
package enum Freshness: Sendable, Equatable {
    /// Trusted for so many more seconds, at least one.
    case fresh(remaining: Int64)
    /// May be answered with, while the origin is asked again; fresh until `age` seconds ago.
    case stale(age: Int64)
    /// May not be answered with before the origin has been asked; its validators are still good.
    case expired

    /// The state at `now` of what was fetched at `fetchedAt`; all in seconds.
    ///
    /// A clock set back makes no answer older or fresher than it was when fetched.
    package init(fetchedAt: Int64, freshFor: Int64, staleFor: Int64, now: Int64) {
        let age = max(0, now.subtractingReportingOverflow(fetchedAt).partialValue)
        if age < freshFor {
            self = .fresh(remaining: freshFor - age)
        } else if age - freshFor < staleFor {
            self = .stale(age: age - freshFor)
        } else {
            self = .expired
        }
    }
}
