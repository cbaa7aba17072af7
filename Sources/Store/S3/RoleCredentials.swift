internal import Dispatch
internal import Foundation
internal import Glibc
package import HTTPClient
internal import Synchronization
package import SystemIO

/// The keys that a machine, container or service account provides to its programs; see ``CredentialSources``. They are renewed
/// before they expire.
///
/// Any thread. It sends nothing and starts no thread before its first use, so that worker processes may be forked.
package final class RoleCredentials: RenewedKeys, Equatable {
    /// The credentials of this process.
    package static let ofProcess = RoleCredentials(environment: ProcessInfo.processInfo.environment)

    private struct State {
        var latest: FoundKeys?
        /// Why the latest lookup found no keys; nil if it found keys, or if there is no source.
        var failure: StoreError?
        var hasLooked = false
        var isLooking = false
        /// The time of the next lookup, in seconds since 1970.
        var nextLook = Int64.min
        var lastLook = Int64.min
    }

    private let sources: CredentialSources
    private let time: TimeSource
    private let state = Mutex(State())
    private let waiters = Waiters()

    /// The pauses after a lookup that found no keys, in seconds.
    private static let pauseAfterFailure: Int64 = 10
    private static let pauseWithoutSource: Int64 = 60
    /// A file may be replaced at any time.
    private static let lifetimeOfFile: Int64 = 300

    /// - Parameters:
    ///   - environment: The variables of Amazon's programs. Empty ones count as unset.
    ///   - time: Provides the wall clock that the expiry of keys is compared with.
    package init(environment: [String: String], time: TimeSource = .system) {
        sources = CredentialSources(environment.filter { !$0.value.isEmpty })
        self.time = time
    }

    /// Returns a signer, with keys that have not expired if there are any.
    ///
    /// - Parameter limit: The longest wait for keys.
    /// - Returns: Nil if no source of keys exists, so that requests are not signed.
    /// - Throws: ``StoreError/noKeys(cause:)`` if a source fails and has never returned keys.
    package func signature(for region: String, within limit: Duration) async throws(StoreError) -> SignatureV4? {
        await prepare(within: limit)
        return try state.withLock { state throws(StoreError) in
            if let latest = state.latest { return latest.credentials.signature(for: region) }
            if let failure = state.failure { throw failure }
            // This says nothing about the server.
            guard state.hasLooked else { throw .exhausted(cause: "the keys are not known yet") }
            return nil
        }
    }

    package func signature(for region: String) -> SignatureV4? {
        state.withLock { $0.latest }?.credentials.signature(for: region)
    }

    /// The source of the keys, such as `the metadata service of EC2`; nil without keys.
    var source: String? { state.withLock { $0.latest?.source } }

    package func prepare(within limit: Duration) async {
        let (starts, waits) = state.withLock { state in
            let now = time.unixSeconds
            // If the wall clock was set back, the next lookup may be years away.
            let starts = !state.isLooking && (now >= state.nextLook || now < state.lastLook)
            if starts { state.isLooking = true }
            let isValid = state.latest.map { $0.expires.map { now < $0 } ?? true } ?? false
            let isUnsigned = state.hasLooked && state.latest == nil && state.failure == nil
            return (starts, state.isLooking && !isValid && !isUnsigned)
        }
        // Blocks, but not for long and about once per hour.
        if starts { DispatchQueue.global().async { self.look() } }
        guard waits else { return }
        await waiters.wait(within: limit) { state.withLock { !$0.isLooking } }
    }

    /// Asks the sources, notes the result, and ends the waits for it.
    private func look() {
        let result = Result { () throws(StoreError) in try sources.find() }
        state.withLock { state in
            let now = time.unixSeconds
            (state.isLooking, state.hasLooked, state.lastLook) = (false, true, now)
            switch result {
            case .success(let keys?):
                (state.latest, state.failure) = (keys, nil)
                state.nextLook = keys.expires.map { Self.renewal(of: $0, now: now) } ?? now + Self.lifetimeOfFile
            case .success(nil) where state.latest == nil:
                state.failure = nil
                state.nextLook = now + Self.pauseWithoutSource
            // The former keys stay in use; the service decides how long they are valid.
            case .success(nil):
                state.nextLook = now + Self.pauseAfterFailure
            case .failure(let error):
                state.failure = error
                state.nextLook = now + Self.pauseAfterFailure
            }
        }
        waiters.notify()
    }

    /// Returns when to renew keys that expire at a time, which may be in the past: five minutes earlier, or after three
    /// quarters of a lifetime below 20 minutes.
    private static func renewal(of expires: Int64, now: Int64) -> Int64 {
        let lifetime = min(max(0, expires - now), 1 << 40)
        return max(now + min(lifetime / 2, pauseAfterFailure), now + lifetime - min(300, lifetime / 4))
    }

    package static func == (one: RoleCredentials, other: RoleCredentials) -> Bool { one === other }
}

struct FoundKeys: Sendable, Equatable {
    let credentials: S3Credentials
    /// Seconds since 1970; nil if they do not expire.
    var expires: Int64?
    /// For log lines.
    let source: String
}
