/// How soon a job should have its turn: 0 before all others, 7 after them, as `u` of RFC 9218 section 4.1 has it.
package struct Urgency: Sendable, Hashable {
    /// 0…7; a lower one goes first.
    package let level: Int

    /// A level outside 0…7 becomes the nearest one inside.
    package init(level: Int) {
        self.level = min(max(level, 0), 7)
    }

    /// Somebody waits for it: RFC 9218's default.
    package static let visitor = Urgency(level: 3)
    /// An answer was given already; this keeps the next one from being out of date.
    package static let renewal = Urgency(level: 6)
    /// Nobody has asked yet.
    package static let prewarm = Urgency(level: 7)

    /// Whether nobody waits for it.
    package var isBackground: Bool { level >= Self.renewal.level }
}
