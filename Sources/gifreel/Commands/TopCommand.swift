internal import ArgumentParser
internal import Foundation
internal import Web

/// `gifreel top`: shows who and what has cost a running server most in the last minutes.
struct TopCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "top",
        abstract: "Shows what has cost a running server most in the last minutes.",
        usage: "gifreel top\ngifreel top --by refused --of client",
        discussion:
            "Counts the processor time of conversions in milliseconds, bytes of responses, misses, and refused requests.")

    @Option(help: "cpu, bytes, misses or refused.")
    var by = UsageBoard.Measure.cpu

    @Option(help: "host (of sources), client, mount or source.")
    var of = UsageBoard.Subject.host

    @Option(help: "The largest number of lines, 1 to 100.")
    var limit = 10

    @Flag(help: "Prints the server's JSON.")
    var json = false

    @OptionGroup var admin: AdminServer

    func validate() throws {
        guard (1...100).contains(limit) else { throw ValidationError("--limit must be 1 to 100.") }
    }

    /// Exits with 1 if the server cannot be reached or refuses.
    func run() throws {
        let body = try admin.document("/top?by=\(by.rawValue)&of=\(of.rawValue)&limit=\(limit)")
        if json { return print(String(decoding: body, as: UTF8.self)) }
        let listing = try AdminServer.decoded(TopListing.self, body)
        let unit =
            switch listing.by {
            case .cpu: "ms of CPU"
            case .bytes: "bytes"
            case .misses: "misses"
            case .refused: "refused requests"
            }
        if listing.entries.isEmpty { print("no \(unit) in the last \(listing.minutes) minutes") }
        for entry in listing.entries {
            let amount = String(entry.amount)
            let padding = String(repeating: " ", count: max(0, 14 - amount.count))
            print("\(padding)\(amount) \(unit)  \(entry.key)" + (entry.error > 0 ? "  (at most \(entry.error) too many)" : ""))
        }
    }
}

extension UsageBoard.Measure: ExpressibleByArgument {}
extension UsageBoard.Subject: ExpressibleByArgument {}
