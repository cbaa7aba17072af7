@testable import Cache

/// A model of ``Index`` in dictionaries, for comparison after the same lines of a journal.
struct IndexModel: Equatable {
    struct Alias: Equatable {
        let sequence: Int64
        let record: AliasRecord
        let object: ObjectID
    }

    struct Former: Hashable {
        let object: ObjectID
        let url: String
    }

    private(set) var objects: [ObjectID: ObjectRow] = [:]
    private(set) var aliases: [AliasKey: Alias] = [:]
    private(set) var formers: [Former: Int64] = [:]

    mutating func apply(_ line: JournalLine) -> RemovedRows {
        switch line.entry {
        case .object(let record):
            if let stored = objects[record.id] {
                if stored.sequence >= line.sequence { break }
                remove(record.id)
            }
            objects[record.id] = ObjectRow(sequence: line.sequence, record: record)
        case .alias(let record, let object):
            if let known = aliases[record.key] {
                if known.sequence < line.sequence, known.object != object {
                    formers[Former(object: known.object, url: known.record.sourceURL)] = known.sequence
                }
                if known.sequence >= line.sequence { break }
            }
            aliases[record.key] = Alias(sequence: line.sequence, record: record, object: object)
        case .formerAlias(let url, let object):
            formers[Former(object: object, url: url)] = line.sequence
        case .upload(let object):
            if let stored = objects[object], stored.sequence < line.sequence, stored.uploaded < line.sequence {
                objects[object]?.uploaded = line.sequence
            }
        case .purge(let scope):
            return purge(scope, before: line.sequence)
        }
        return RemovedRows()
    }

    private mutating func remove(_ id: ObjectID) {
        objects[id] = nil
        formers = formers.filter { $0.key.object != id }
    }

    private mutating func purge(_ scope: PurgeScope, before sequence: Int64) -> RemovedRows {
        let coveredAliases = aliases.filter { $0.value.sequence < sequence && scope.covers($0.value) }
        let coveredFormers = formers.filter { $0.value < sequence && scope.covers($0.key.url, object: $0.key.object) }
        let leading = Set(coveredAliases.map(\.value.object)).union(coveredFormers.map(\.key.object))
        let kept = Set(aliases.filter { coveredAliases[$0.key] == nil }.map(\.value.object))
        let coveredObjects = objects.values.filter { object in
            guard object.sequence < sequence else { return false }
            switch scope {
            case .all: return true
            case .object(let id): return object.record.id == id
            case .url, .prefix:
                let id = object.record.id
                return object.uploaded == 0 && leading.contains(id) && !kept.contains(id)
            }
        }
        var removed = RemovedRows(
            objects: coveredObjects.sorted { $0.sequence < $1.sequence }, aliases: Int64(coveredAliases.count))
        switch scope {
        case .all:
            let aliased = Set(aliases.values.map(\.object))
            removed.unaliased = Int64(coveredObjects.count { !aliased.contains($0.record.id) })
        case .object: removed.unaliased = coveredAliases.isEmpty ? Int64(coveredObjects.count) : 0
        case .url, .prefix: break
        }
        for key in coveredAliases.keys { aliases[key] = nil }
        for former in coveredFormers.keys { formers[former] = nil }
        for object in coveredObjects { remove(object.record.id) }
        return removed
    }
}

extension PurgeScope {
    fileprivate func covers(_ alias: IndexModel.Alias) -> Bool {
        covers(alias.record.sourceURL, object: alias.object)
    }
}
