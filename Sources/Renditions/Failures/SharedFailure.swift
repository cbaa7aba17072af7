internal import Fetch
internal import Media
internal import Sandbox

/// A failure that one node has found and that other nodes answer with, instead of trying the source themselves.
///
/// Only failures that the origin's answer or the bytes of the source determine are shared. An origin that one node cannot reach
/// may be reachable for another, and a crash of a converter says little about the source.
package struct SharedFailure: Sendable, Equatable {
    package let error: RenditionError
    /// When it was found, in seconds since 1970.
    package let foundAt: Int64
    /// Seconds for which it is remembered after that.
    package let lifetime: Int64

    private static let maxLifetime: Int64 = 600
    private static let nanosecondsPerSecond: UInt64 = 1_000_000_000

    /// Nil for a failure that concerns this node only.
    init?(_ error: RenditionError, foundAt: Int64) {
        guard Form(error) != nil, let lifetime = error.lifetime else { return nil }
        self.error = error
        self.foundAt = foundAt
        self.lifetime = Int64(lifetime.nanoseconds() / Self.nanosecondsPerSecond)
    }

    /// Nil unless ``code`` and ``details(scope:)`` wrote the texts under the same scope.
    package init?(code: String, details: some Collection<UInt8>, scope: String, foundAt: Int64, lifetime: Int64) {
        guard let text = String(validating: details, as: UTF8.self), text.hasPrefix(scope + "\n"),
            (1...Self.maxLifetime).contains(lifetime), let code = Code(rawValue: code)
        else { return nil }
        let words = text.dropFirst(scope.count + 1).split(separator: ",", omittingEmptySubsequences: false)
        guard let error = Form(code: code, words: words.map { String($0) }).error else { return nil }
        self.error = error
        self.foundAt = foundAt
        self.lifetime = lifetime
    }

    /// Whether it concerns all renditions of the source.
    package var isOfSource: Bool {
        if case .fetchFailed = error { true } else { error.isOfImage }
    }

    /// The kind of failure, for other nodes.
    package var code: String { Form(error)?.code.rawValue ?? "" }

    /// Details of the failure, for other nodes.
    ///
    /// - Parameter scope: Identifies the limits that decide whether a source fails. A node with other limits ignores the
    ///   failure.
    package func details(scope: String) -> [UInt8] {
        Array("\(scope)\n\(Form(error)?.words.joined(separator: ",") ?? "")".utf8)
    }

    /// Returns the seconds that are left, clamped to the lifetime because the clocks of two nodes may differ.
    func remaining(at now: Int64) -> Int64 {
        min(max(foundAt + lifetime - now, 1), lifetime)
    }

    private enum Code: String {
        case notFound = "not_found"
        case gone
        /// The problem's former name, by which nodes of older versions know it.
        case notAnAnimation = "not_a_gif"
        case tooLarge = "source_too_large"
        case tooManyRedirects = "too_many_redirects"
        case status
        case undecodable
        case still
        case incomplete
        case corrupt
        case unsupported
        case limitExceeded = "limit_exceeded"
        case memoryExceeded = "memory_exceeded"
        case cpuExceeded = "cpu_exceeded"
    }

    /// An error as text.
    private struct Form {
        let code: Code
        let words: [String]

        init(code: Code, words: [String]) {
            self.code = code
            self.words = words
        }

        private init(code: Code, _ numbers: [Int]) {
            self.init(code: code, words: numbers.map { String($0) })
        }

        init?(_ error: RenditionError) {
            switch error {
            case .fetchFailed(let error): self.init(error)
            case .conversionFailed(let error, let allowance): self.init(error, allowance)
            // Each node has a list and a limit of its own.
            case .blocked, .flashing: return nil
            case .invalidOption, .invalidSourceURL, .notStored, .rateLimited, .factsUnusable, .overloaded, .waitTimedOut,
                .storageFailed, .cancelled, .remembered:
                return nil
            }
        }

        private init?(_ error: FetchError) {
            switch error {
            case .notFound: self.init(code: .notFound, words: [])
            case .gone: self.init(code: .gone, words: [])
            case .notAnAnimation(let kind): self.init(code: .notAnAnimation, words: [kind.rawValue])
            case .tooLarge(let limit, let declared): self.init(code: .tooLarge, [limit, declared ?? -1])
            case .tooManyRedirects(let limit): self.init(code: .tooManyRedirects, [limit])
            case .failed(.status(let status, let retryAfter, _)):
                self.init(code: .status, [status, Int(clamping: retryAfter?.components.seconds ?? -1)])
            case .failed, .notAllowed, .unreachable, .timeout, .busy, .cancelled, .closed, .exhausted: return nil
            }
        }

        private static let conversions: [TranscodeError.Kind: Code] = [
            .notAnAnimation: .undecodable, .still: .still, .incomplete: .incomplete, .corrupt: .corrupt,
            .unsupported: .unsupported, .tooLarge: .limitExceeded, .outOfMemory: .memoryExceeded,
        ]

        private init?(_ error: SandboxError, _ allowance: WorkerAllowance) {
            let limits = [allowance.cpu, allowance.memory, allowance.output, allowance.wall]
            switch error {
            case .rejected(let cause):
                let (kind, numbers) = cause.form
                guard let code = Self.conversions[kind] else { return nil }
                self.init(code: code, limits + numbers)
            case .cpuLimitExceeded: self.init(code: .cpuExceeded, limits)
            case .crashed, .misbehaved, .invalidOutput, .wallClockTimeout, .killed, .zygoteUnresponsive, .queueFull, .cancelled,
                .unavailable:
                return nil
            }
        }

        /// The error; nil if the words do not describe one.
        var error: RenditionError? {
            if code == .notAnAnimation {
                return words.count == 1
                    ? ContentKind(rawValue: words[0]).map { .fetchFailed(.notAnAnimation(looksLike: $0)) } : nil
            }
            let numbers = words == [""] ? [] : words.compactMap { Int($0) }
            guard numbers.count == words.count || words == [""] else { return nil }
            if let error = fetchError(numbers) { return .fetchFailed(error) }
            guard numbers.count >= 4, numbers.allSatisfy({ $0 >= 0 }),
                let error = sandboxError(Array(numbers.dropFirst(4)))
            else { return nil }
            let allowance = WorkerAllowance(cpu: numbers[0], memory: numbers[1], output: numbers[2], wall: numbers[3])
            return .conversionFailed(error, allowance: allowance)
        }

        private func fetchError(_ numbers: [Int]) -> FetchError? {
            switch (code, numbers.count) {
            case (.notFound, 0): .notFound
            case (.gone, 0): .gone
            case (.tooLarge, 2) where numbers[0] >= 0:
                .tooLarge(limit: numbers[0], declared: numbers[1] < 0 ? nil : numbers[1])
            case (.tooManyRedirects, 1) where numbers[0] >= 0: .tooManyRedirects(limit: numbers[0])
            case (.status, 2) where (100...999).contains(numbers[0]) && numbers[1] <= 1 << 31:
                .failed(.status(numbers[0], retryAfter: numbers[1] < 0 ? nil : .seconds(numbers[1])))
            default: nil
            }
        }

        private func sandboxError(_ numbers: [Int]) -> SandboxError? {
            if code == .cpuExceeded { return numbers.isEmpty ? .cpuLimitExceeded : nil }
            guard let kind = Self.conversions.first(where: { $0.value == code })?.key,
                let error = TranscodeError(kind, numbers), error.form.numbers == numbers
            else { return nil }
            return .rejected(error)
        }
    }
}
