internal import ArgumentParser
internal import Foundation
internal import Prewarm
internal import SystemIO
internal import Web

/// `gifreel cache`: describes the cache of a running server, or its stored renditions of sources.
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
        let targets = urls.isEmpty ? ["/cache"] : urls.map { "/cache?url=\(PercentEncoding.encode(admin.subject($0)))" }
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

    private static func printNumbers(_ body: Data) throws {
        let numbers = try AdminServer.decoded(CacheSummary.self, body)
        let used = numbers.limitBytes > 0 ? Double(numbers.diskBytes) * 100 / Double(numbers.limitBytes) : 0
        print("renditions   \(numbers.objects), \(numbers.bytes) bytes, under \(numbers.aliases) addresses")
        let free = numbers.freeBytes.map { ", \($0) bytes free on the disk" } ?? ""
        print("disk         \(numbers.diskBytes) of \(numbers.limitBytes) bytes (\(Int(used)) %)\(free)")
        if let reason = numbers.notStoring { print("storing      nothing: \(reason)") }
        print("lookups      \(numbers.hits) hits, \(numbers.misses) misses since the start")
        print("evictions    \(numbers.evictions)")
        print("in progress  \(numbers.inProgress)")
        if let store = numbers.store {
            let state = store.available ? "available" : "unavailable"
            print("store        \(state); waiting writes: \(store.queued), \(store.queuedBytes) bytes")
        }
        if let cluster = numbers.cluster {
            let state = cluster.shared ? "shares work" : "works alone"
            print("cluster      \(cluster.node) \(state); nodes: \(cluster.nodes), waiting purges: \(cluster.pendingPurges)")
            for member in cluster.members { print("  \(member.node): \(member.lag) s behind in purges") }
        }
    }
}
