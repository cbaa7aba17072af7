internal import ArgumentParser
internal import Foundation
internal import Glibc
internal import Settings
internal import Store
internal import Synchronization
internal import SystemIO

struct StoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store", abstract: "Maintains the shared store of renditions.", subcommands: [PruneCommand.self])
}

/// `gifreel store prune`: deletes old renditions from the bucket of the settings.
struct PruneCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "prune",
        abstract: "Deletes renditions that were stored long ago from the shared store.",
        discussion: """
            The bucket, its prefix and its keys are those of the settings store.s3.…. Other objects in the bucket stay. A \
            rendition that is deleted and requested again is produced again; nodes that have it on disk keep it.

            If the run fails, --start-after with the key that it prints continues it.

            Exit status: 0 if all old renditions were deleted, 1 if the store could not be reached or refused.
            """)

    @Option(help: ArgumentHelp("The age from which renditions are deleted, such as 12h or 30d.", valueName: "age"))
    var olderThan: String

    @Flag(help: "Counts the renditions without deleting them.")
    var dryRun = false

    @Option(help: ArgumentHelp("The largest number of deletions per second.", valueName: "number"))
    var rate = 100.0

    @Option(help: ArgumentHelp("The largest number of requests at once.", valueName: "number"))
    var concurrency = 16

    @Option(help: ArgumentHelp("Only objects with keys after this one are listed.", valueName: "key"))
    var startAfter: String?

    @OptionGroup var settings: SettingsArguments

    /// The longest age. It is far below what the arithmetic of times can hold.
    private static let maxAge = Duration.seconds(100 * 366 * 86_400)

    func validate() throws {
        guard let age, (.zero...Self.maxAge).contains(age) else {
            throw ValidationError("--older-than is “\(olderThan)”; it must be a time such as 12h or 30d.")
        }
        guard (0.01...100_000).contains(rate) else { throw ValidationError("--rate must be from 0.01 to 100000.") }
        guard (1...256).contains(concurrency) else { throw ValidationError("--concurrency must be from 1 to 256.") }
    }

    /// Nil without a unit: seconds in place of days would delete nearly everything.
    private var age: Duration? { olderThan.last?.isLetter ?? false ? Duration(settingText: olderThan) : nil }

    func run() throws {
        guard let configuration = try ServiceConfiguration(try settings.read().settings).store else {
            throw SettingsError("store.s3.bucket is not set.")
        }
        // Without a ledger: the outbox belongs to the server.
        let store = try SharedStore(configuration) { _ in }
        defer { store.close() }
        let time = Int64(Date.now.timeIntervalSince1970) - (age ?? .zero).components.seconds
        let (start, rate, concurrency, isDryRun) = (startAfter, rate, concurrency, dryRun)
        let display = PruneDisplay(isDryRun: isDryRun)
        do throws(StoreError) {
            let totals = try Blocking.wait { () async throws(StoreError) in
                try await store.prune(
                    storedBefore: time, after: start, deletionsPerSecond: rate, concurrency: concurrency, isDryRun: isDryRun
                ) { display.show($0) }
            }
            display.end()
            print(
                "\(totals.deleted) of \(totals.listed) objects \(isDryRun ? "would be deleted" : "deleted"), "
                    + "\(totals.bytes) bytes")
        } catch {
            display.end()
            let place = display.completeThrough ?? start
            let hint = place.map { " Continue with --start-after \($0)." } ?? ""
            throw SettingsError("The shared store could not be pruned: \(error)\(hint)")
        }
    }
}

/// The progress of a run on a terminal: one line, at most ten times per second.
private final class PruneDisplay: Sendable {
    private static let interval = Duration.milliseconds(100)

    private let isOn = isatty(STDERR_FILENO) == 1
    private let verb: String
    /// When the line was last written, and the last ``PruneProgress/completeThrough``.
    private let last = Mutex<(time: ContinuousClock.Instant?, place: String?)>((nil, nil))

    init(isDryRun: Bool) {
        verb = isDryRun ? "counted" : "deleted"
    }

    var completeThrough: String? { last.withLock(\.place) }

    func show(_ totals: PruneProgress) {
        let isDue = last.withLock { last in
            last.place = totals.completeThrough
            let now = ContinuousClock.now
            guard isOn, last.time.map({ now - $0 >= Self.interval }) ?? true else { return false }
            last.time = now
            return true
        }
        if isDue { StandardError.write("\r\(totals.listed) objects seen, \(totals.deleted) \(verb), \(totals.bytes) bytes") }
    }

    func end() {
        if last.withLock({ $0.time != nil }) { StandardError.write("\r\u{1b}[K") }
    }
}
