internal import HTTP
internal import Renditions

/// The body of `GET /top` (docs/api.md).
package struct TopListing: Codable, Sendable {
    package struct Entry: Codable, Sendable, Equatable {
        /// A host, the address of a client, or the name of a mount.
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

/// Handles `GET /top`.
struct TopController: Sendable {
    private let board: UsageBoard
    private let admin: AdminController

    private static let mostEntries = 100

    init(board: UsageBoard, admin: AdminController) {
        self.board = board
        self.admin = admin
    }

    func answer(_ query: [QueryItem], authorization: String?) throws(Problem) -> HTTPReply {
        try admin.authorize(authorization)
        var (measure, subject, limit) = (UsageBoard.Measure.cpu, UsageBoard.Subject.host, 10)
        var names: Set<String> = []
        for item in query {
            guard names.insert(item.name).inserted else { throw .badRequest("\(item.name.prefix(64)) is given twice.") }
            switch item.name {
            case "by": measure = try Self.word(item)
            case "of": subject = try Self.word(item)
            case "limit":
                guard let number = Int(item.value), (1...Self.mostEntries).contains(number) else {
                    throw .badRequest("limit must be a whole number from 1 to \(Self.mostEntries).")
                }
                limit = number
            default: throw .badRequest("GET /top takes by, of and limit.")
            }
        }
        return .now(
            AdminController.json(
                TopListing(
                    by: measure, of: subject, minutes: UsageBoard.minutes,
                    entries: board.top(measure, of: subject, limit: limit))))
    }

    private static func word<Word: RawRepresentable<String> & CaseIterable>(_ item: QueryItem) throws(Problem) -> Word {
        guard let word = Word(rawValue: item.value) else {
            throw .badRequest("\(item.name) must be one of \(Word.allCases.map(\.rawValue).joined(separator: ", ")).")
        }
        return word
    }
}
