#if FUZZ
    /// What the parsers name of the cache, whose files the fuzzer does without.
    /// What a choice by `Accept` needs of the facts.
    struct SourceFacts {
        var loopCount: Int?
        var transparent = false
    }

    package struct ObjectID: Hashable, Sendable {
        private let text: String

        init?(hex: some StringProtocol) {
            guard hex.utf8.count == 64, hex.allSatisfy(\.isHexDigit) else { return nil }
            text = String(hex)
        }
    }

    /// The errors of options, without those of the layers below.
    package enum RenditionError: Error, Equatable {
        case invalidOption(name: String, reason: String)
    }

    /// A request without fields.
    package struct HTTPRequest: ~Copyable {
        func forEachValue(of name: HTTPFieldName, _ body: (UnsafeRawBufferPointer) -> Void) {}
    }

    extension Problem {
        init(_ error: RenditionError) {
            switch error {
            case .invalidOption(let name, let reason): self = .badOption(name, reason)
            }
        }
    }
#endif
