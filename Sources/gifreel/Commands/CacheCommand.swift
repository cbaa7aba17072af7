internal import ArgumentParser
internal import Foundation
internal import Prewarm
internal import SystemIO
internal import Web

/// `gifreel cache`: describes the cache of a running server, or what it has stored of sources.
struct CacheCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cache",
        abstract: "Shows the cache of a running server.",
        usage: "gifreel cache\ngifreel cache URL…",
        discussion: "Without URLs, prints the numbers of the cache. With URLs, prints a line for each stored rendition.")

    @Argument(help: "URLs of sources.")
    var urls: [String] = []

    @Flag(help: "Prints the server's JSON.")
    var json = false

    @OptionGroup var admin: AdminServer

    /// Exits with 1 if the server cannot be reached or refuses.
    func run() throws {
        let targets = urls.isEmpty ? ["/cache"] : urls.map { "/cache?url=\(PercentEncoding.encode($0))" }
        for target in targets {
            let body = try admin.document(target)
            if json {
                print(String(decoding: body, as: UTF8.self))
            } else if urls.isEmpty {
                try Self.printNumbers(body)
            } else {
                try Self.printRenditions(body)
            }
        }
    }

    private static func printRenditions(_ body: Data) throws {
        let listed = try AdminServer.decoded(CacheListing.self, body)
        print("\(listed.url): \(listed.renditions.isEmpty ? "nothing stored" : "\(listed.renditions.count) stored")")
        for rendition in listed.renditions { print("  " + rendition.line) }
    }

    private struct Numbers: Decodable {
        var objects: Int64
        var bytes: Int64
        var aliases: Int64
        var diskBytes: Int64
        var limitBytes: Int64
        var freeBytes: Int64?
        var notStoring: String?
        var hits: Int64
        var misses: Int64
        var evictions: Int64
        var inProgress: Int64

        private enum CodingKeys: String, CodingKey {
            case objects, bytes, aliases, hits, misses, evictions
            case diskBytes = "disk_bytes"
            case limitBytes = "limit_bytes"
            case freeBytes = "free_bytes"
            case notStoring = "not_storing"
            case inProgress = "in_progress"
        }
    }

    private static func printNumbers(_ body: Data) throws {
        let numbers = try AdminServer.decoded(Numbers.self, body)
        let used = numbers.limitBytes > 0 ? Double(numbers.diskBytes) * 100 / Double(numbers.limitBytes) : 0
        print("renditions   \(numbers.objects), \(numbers.bytes) bytes, under \(numbers.aliases) addresses")
        let free = numbers.freeBytes.map { ", \($0) bytes free on the disk" } ?? ""
        print("disk         \(numbers.diskBytes) of \(numbers.limitBytes) bytes (\(Int(used)) %)\(free)")
        if let reason = numbers.notStoring { print("storing      nothing: \(reason)") }
        print("look-ups     \(numbers.hits) hits, \(numbers.misses) misses since the start")
        print("evictions    \(numbers.evictions)")
        print("in progress  \(numbers.inProgress)")
    }
}
