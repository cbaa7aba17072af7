internal import HTTP

struct TopController: Sendable {
    let board: UsageBoard

    private static let mostEntries = 100

    func answer(_ query: [QueryItem]) throws(Problem) -> HTTPReply {
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
            .json(
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
