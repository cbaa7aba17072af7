import SystemIO

@testable import Fetch
@testable import Renditions
@testable import Store

/// Checks responses against the rules of the ``Ledger``.
struct ResponseChecks: Sendable {
    private let scheduler: SimulatedScheduler
    private let ledger: Ledger
    private let node: SimulatedNode
    /// Whether lifetimes are checked, which a wall clock that is set makes impossible.
    private let checksAge: Bool

    init(_ scheduler: SimulatedScheduler, _ ledger: Ledger, _ node: SimulatedNode, checksAge: Bool) {
        self.scheduler = scheduler
        self.ledger = ledger
        self.node = node
        self.checksAge = checksAge
    }

    /// Records a broken rule, unless the process has crashed: its responses reach nobody.
    func report(_ text: String) {
        if !node.hasCrashed { ledger.violation("\(text) (step \(scheduler.steps))") }
    }

    func check(_ error: RenditionError, _ url: Int, _ floor: Ledger.Floor) {
        if let version = error.version, version < floor.versions[url] { report("a failure is older than a purge: \(error)") }
    }

    /// Checks all bytes of a source that was followed.
    func check(followed bytes: [UInt8], _ url: Int, _ floor: Ledger.Floor) {
        guard let contents = SourceContents(bytes), contents.group == Ledger.group(url) else {
            return report("the bytes of a followed source are wrong")
        }
        if contents.version < floor.versions[url] { report("a followed source is older than a purge") }
    }

    /// - Parameter url: Nil for an upload.
    /// - Returns: What the rendition was made from; nil if it is wrong, or was taken from its readers.
    @discardableResult
    func check(
        _ stored: CachedRendition, of rendition: Rendition, _ group: UInt8, _ url: Int?, _ floor: Ledger.Floor,
        _ began: UInt64
    ) -> SourceContents? {
        guard let bytes = try? stored.descriptor.readAll() else {
            report("a response cannot be read")
            return nil
        }
        // A rendition in memory is emptied where a job needs its memory. Its length was announced, so the client notices.
        if bytes.isEmpty, stored.length > 0, stored.object.sequence == 0 { return nil }
        let contents: SourceContents
        if rendition.format == .original {
            guard let source = SourceContents(bytes), source.group == group else {
                report("a response has the bytes of no version of its source")
                return nil
            }
            contents = source
        } else {
            guard let made = RenditionContents(bytes), made.source.group == group, made.text == rendition.canonicalText else {
                report("a response has the bytes of no rendition of its source")
                return nil
            }
            contents = made.source
            if made.conversion <= max(floor.conversion, floor.objects[stored.objectID] ?? 0) {
                report("a response was converted before a purge of everything or of its object")
            }
        }
        if let url { checkVersion(contents, url, floor, began) }
        return contents
    }

    private func checkVersion(_ contents: SourceContents, _ url: Int, _ floor: Ledger.Floor, _ began: UInt64) {
        if contents.version < floor.versions[url] {
            report("version \(contents.version) of source \(url) after a purge of all before \(floor.versions[url])")
        }
        let limit = UInt64(max(Limits.freshFor, Limits.longest) + Limits.staleFor + Limits.fetch) * 1_000_000_000
        if checksAge, ledger.age(contents, at: began) > limit { report("a response is older than its lifetimes") }
    }
}
